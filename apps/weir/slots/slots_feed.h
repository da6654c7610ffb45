#pragma once

#include <simdjson.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "csv.h"
#include "slots/slot.h"
#include "weir/result.h"

namespace weir::app {

/// One event of a feed: its request, or the error in its line.
struct FeedEvent {
  std::int64_t line = 0;  ///< in the feed
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
/// are ignored, unless one is probably a misspelling of one of these that is missing: Open fails
/// for such a header, and such a JSON line is invalid. Open reports ignored columns.
///
/// Not thread-safe.
class FeedReader {
 public:
  static Result<FeedReader> Open(const std::string& path, FeedDefaults defaults);

  /// Returns nothing at the end.
  std::optional<FeedEvent> Next();
  /// Whether the end was that of the file: a disk that fails in the middle of it looks the same.
  Status ended() const;
  /// The ignored fields of the JSON lines so far, for a person; empty: none.
  std::string Ignored() const;

  const std::string& path() const noexcept { return path_; }
  std::int64_t bytes_read() const noexcept { return bytes_read_; }
  std::int64_t bytes_total() const noexcept { return bytes_total_; }

 private:
  FeedReader(std::string path, std::ifstream in, FeedDefaults defaults, bool json);
  std::optional<std::string> NextLine();
  Status ReadHeader();
  Status CheckDefaults() const;
  FeedEvent FromCsv(const std::string& line);
  FeedEvent FromJson(const std::string& line);
  void NoteOthers(const simdjson::dom::object& object);
  Status Fill(FeedEvent& event, const std::string& time) const;

  std::string path_;
  std::ifstream in_;
  FeedDefaults defaults_;
  bool json_;
  CsvLines csv_;
  std::vector<std::string> columns_;
  std::string ignored_;                        // names of other columns
  std::set<std::string, std::less<>> others_;  // fields of JSON lines that are ignored
  std::int64_t bytes_read_ = 0;
  std::int64_t bytes_total_ = 0;
  std::int64_t line_ = 0;
};

}  // namespace weir::app
