#pragma once

// CSV as in RFC 4180, one row per line, read strictly: files of payments and caps come from
// programs with their own ways of quoting, and a row must never be taken for another.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::app {

/// The fields of one line. An error if a quote is where it would be lost.
Result<std::vector<std::string>> SplitCsv(std::string_view line);

/// The fields before the first error: to show what an invalid line was about.
std::vector<std::string> FieldsBeforeError(std::string_view line);

/// Splits the lines of one file, in order. A field cannot span several lines: the lines of one that
/// does are all errors, including those in the middle that look like rows.
///
/// Not thread-safe.
class CsvLines {
 public:
  Result<std::vector<std::string>> Split(std::string_view line, std::int64_t number);
  /// The line whose last field is not closed yet; 0: none.
  std::int64_t open() const noexcept { return open_; }

 private:
  std::int64_t open_ = 0;
};

/// Appends `text`, quoted if it must be.
void AppendCsv(std::string& out, const std::string& text);
/// The first line of a file without the byte order mark that spreadsheets write before it.
std::string_view WithoutMark(std::string_view line);

}  // namespace weir::app
