#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "telemetry/metrics.h"

namespace weir::net {

/// Counters of one reactor and protocol. Thread safety: one thread writes, any may read.
struct DoorMetrics {
  /// From a read to the answers to what it brought, within this process.
  telemetry::LocalHistogram latency;
  telemetry::LocalCounter requests;

  /// Records `n` requests that arrived together and were answered together.
  void Answered(std::int64_t nanos, std::uint64_t n) noexcept {
    if (n == 0) return;
    latency.Observe(nanos, n);
    requests.Add(n);
  }
};

/// A door and the counters of its reactors.
struct DoorFigures {
  std::string_view door;
  std::vector<const DoorMetrics*> parts;

  DoorFigures(std::string_view name, std::span<const DoorMetrics> metrics) : door(name) {
    for (const DoorMetrics& part : metrics) parts.push_back(&part);
  }
};

/// Collects weir_latency_seconds and weir_requests_total by door.
void CollectDoors(std::span<const DoorFigures> doors, telemetry::TextWriter& out);

}  // namespace weir::net
