#pragma once

#include <string>

#include "slots/slots_feed.h"
#include "slots/slots_target.h"
#include "weir/result.h"

namespace weir::app {

struct ImportOptions {
  std::string feed = {};
  std::string out = {};  ///< .csv or .jsonl; empty: next to the feed
  FeedDefaults defaults = {};
  std::string target = {};  ///< the service or store, without secrets
  std::size_t batch = slots::kMaxBatch;
  bool quiet = false;
};

/// What an import did, including an earlier, interrupted run.
struct ImportSummary {
  std::int64_t events = 0;
  std::int64_t fresh = 0;
  std::int64_t existing = 0;
  std::int64_t conflicts = 0;  ///< the id belongs to another event
  std::int64_t cancelled = 0;  ///< cancelled before, and remain so
  std::int64_t refused = 0;    ///< invalid, exhausted or for an unknown config
  std::int64_t resumed = 0;    ///< answered by the earlier run
  slots::Millis last_window = 0;
  std::string out = {};
};

/// Sends a feed in batches and writes an answer per event, in order. Answers go to `<out>.part` as
/// they arrive; if that file exists at the start, the import continues after its last answer, or
/// fails if what was answered has changed (ResultsFile). Repeating a batch does no harm: an event
/// keeps its slot.
Result<ImportSummary> Import(SlotsTarget& target, const ImportOptions& options);

}  // namespace weir::app
