#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "csv.h"
#include "slots/slot.h"
#include "weir/result.h"

namespace weir::app {

/// One event of a feed: its request, or the error in its line.
struct FeedEvent {
  slots::Ask ask = {};
  Status status = {};
};

/// Values for what a feed omits.
struct FeedDefaults {
  std::string config = {};
  std::optional<slots::Millis> requested = {};
};

/// Reads a feed line by line: `.csv` with a header (eventId, requestedTime, and optionally
/// configName, tenant and payload), or `.jsonl` with one object of these fields per line. Empty
/// lines are skipped; a CSV field cannot contain a line break (CsvLines). Other columns and fields
/// are ignored, which is reported once for a CSV file, unless their names are nearly one of these.
///
/// Not thread-safe.
class FeedReader {
 public:
  static Result<FeedReader> Open(const std::string& path, FeedDefaults defaults);

  /// Returns nothing at the end.
  std::optional<FeedEvent> Next();
  /// Whether the end was that of the file: a disk that fails in the middle of it looks the same.
  Status ended() const;

  std::int64_t bytes_read() const noexcept { return bytes_read_; }
  std::int64_t bytes_total() const noexcept { return bytes_total_; }

 private:
  FeedReader(std::string path, std::ifstream in, FeedDefaults defaults, bool json);
  std::optional<std::string> NextLine();
  Status ReadHeader();
  Status CheckDefaults() const;
  FeedEvent FromCsv(const std::string& line);
  FeedEvent FromJson(const std::string& line) const;
  Status Fill(FeedEvent& event, const std::string& time) const;

  std::string path_;
  std::ifstream in_;
  FeedDefaults defaults_;
  bool json_;
  CsvLines csv_;
  std::vector<std::string> columns_;
  std::string ignored_;  // names of other columns
  std::int64_t bytes_read_ = 0;
  std::int64_t bytes_total_ = 0;
  std::int64_t line_ = 0;
};

}  // namespace weir::app
