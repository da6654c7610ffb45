#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "slots/slot.h"
#include "slots/slots_feed.h"
#include "weir/result.h"

namespace weir::app {

/// The result of one event.
struct ResultLine {
  slots::Slot slot;
  std::string status;  ///< "NEW", or with a reason: "CONFLICT: …"
  bool placed = false;
};

/// What the answers depend on besides the rows of the feed; contains no secrets.
struct ImportTerms {
  std::string target = {};  ///< the service or store
  std::string config = {};  ///< empty: not given
  std::string at = {};      ///< empty: not given
};

/// The results of an import, .jsonl or .csv, with a line per event. Until the end they are in
/// `<path>.part`, which begins with the terms and has, before each line, a digest of the event that
/// was answered: a changed row or other terms must not be taken for those that got the slots.
///
/// Not thread-safe.
class ResultsFile {
 public:
  explicit ResultsFile(std::string path);

  /// Continues after the answers of an interrupted import, if there are any: skips their events in
  /// `feed`, calls `answered` with the status of each, and removes an answer that is half written.
  /// An error if the terms or the events were others.
  Status Resume(const ImportTerms& terms, FeedReader& feed,
                const std::function<void(std::string_view status)>& answered);

  /// Written by the next Flush.
  void Add(const FeedEvent& event, const ResultLine& line);
  Status Flush();
  /// Writes the results under their own name, and deletes the other file.
  Status Finish();

  const std::string& path() const noexcept { return path_; }

 private:
  Status CheckTerms(const std::string& line, const ImportTerms& terms) const;
  Status SkipAnswered(std::string_view line, std::int64_t number, FeedReader& feed) const;
  /// The event (the first cell) or the status (the last) of a result.
  std::string FieldOf(std::string_view result, const char* name) const;
  bool CopyResults(const std::string& to) const;

  const std::string path_;
  const std::string part_;
  const bool json_;
  std::ofstream out_;
  std::string text_;  // not yet written
};

}  // namespace weir::app
