#include "dispatch/dispatch_metrics.h"

#include <algorithm>
#include <mutex>
#include <string_view>

#include "dispatch/dispatcher.h"

namespace weir::app {

void DispatchCounts::Delivered(slots::Millis after) {
  ++delivered;
  const slots::Millis positive = std::max<slots::Millis>(after, 0);
  late_millis += positive;
  std::size_t bucket = 0;
  while (bucket < kLateBounds.size() &&
         static_cast<double>(positive) > kLateBounds[bucket] * 1000) {
    ++bucket;
  }
  ++late[bucket];
}

DispatchStanding Dispatcher::standing() const {
  const std::lock_guard lock(mutex_);
  return {.counts = counts_,
          .waiting = waiting_.size(),
          .delivering = delivering_,
          .reporting = in_hand_ - waiting_.size() - delivering_,
          .target_up = failing_.count < kAwayAfter,
          .store_up = store_up_,
          .capped = capped_};
}

void Collect(const DispatchStanding& standing, telemetry::TextWriter& out) {
  const DispatchCounts& counts = standing.counts;
  const auto sample = [&out](std::string_view name, std::string_view value, std::uint64_t count) {
    const telemetry::Label label{name, value};
    out.Sample(count, {&label, 1});
  };
  out.Counter("weir_dispatch_claimed_total", "Events that this dispatcher claimed.");
  out.Sample(counts.claimed);
  out.Counter("weir_dispatch_deliveries_total", "Claimed events by what became of them.");
  sample("result", "delivered", counts.delivered);
  sample("result", "retried", counts.retried);
  sample("result", "dead", counts.dead);
  sample("result", "left", counts.left);
  out.Counter("weir_dispatch_redelivered_total",
              "Deliveries of events that had been claimed before.");
  out.Sample(counts.redelivered);
  out.Counter("weir_dispatch_lost_total", "Reports that came after the lease had ended.");
  out.Sample(counts.lost);
  out.Histogram("weir_dispatch_late_seconds", "Time from an event's time to its delivery.");
  out.Samples(DispatchCounts::kLateBounds, counts.late,
              static_cast<double>(counts.late_millis) / 1000);
  out.Gauge("weir_dispatch_in_hand", "Claimed events that are not finished.");
  sample("state", "waiting", standing.waiting);
  sample("state", "delivering", standing.delivering);
  sample("state", "reporting", standing.reporting);
  out.Gauge("weir_dispatch_target_up", "0 if the target fails and is only probed.");
  out.Sample(std::uint64_t{standing.target_up ? 1U : 0U});
  out.Gauge("weir_dispatch_store_up", "1 if the last claim or report was answered.");
  out.Sample(std::uint64_t{standing.store_up ? 1U : 0U});
  out.Gauge("weir_dispatch_capped", "1 if events are due but the window has reached its cap.");
  for (const auto& [config, capped] : standing.capped) sample("config", config, capped ? 1 : 0);
}

}  // namespace weir::app
