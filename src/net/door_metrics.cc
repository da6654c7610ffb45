#include "net/door_metrics.h"

#include <array>
#include <cstdint>

namespace weir::net {

void CollectDoors(std::span<const DoorFigures> doors, telemetry::TextWriter& out) {
  out.Histogram("weir_latency_seconds",
                "Time from a request's last byte to its response, within the process.");
  for (const DoorFigures& door : doors) {
    std::vector<const telemetry::LocalHistogram*> latencies;
    for (const DoorMetrics* part : door.parts) latencies.push_back(&part->latency);
    const std::array<telemetry::Label, 1> label = {{{"door", door.door}}};
    out.Samples(latencies, label);
  }
  out.Counter("weir_requests_total", "Checks and commands answered, by protocol.");
  for (const DoorFigures& door : doors) {
    std::uint64_t sum = 0;
    for (const DoorMetrics* part : door.parts) sum += part->requests.value();
    const std::array<telemetry::Label, 1> label = {{{"door", door.door}}};
    out.Sample(sum, label);
  }
}

}  // namespace weir::net
