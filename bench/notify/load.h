#pragma once

#include <cstdint>
#include <vector>

namespace weir::bench {

/// What clients of POST /api/send observed.
struct LoadResult {
  double sends_per_s = 0;  ///< answered with 200
  double p50_ms = 0;
  double p99_ms = 0;
  long failed = 0;  ///< answered with any other status
};

struct Load {
  std::uint16_t port = 0;
  int connections = 256;
  int users = 1000;
  double seconds = 5;
  /// Zero: each connection sends as soon as it has its answer. Otherwise this many sends per second
  /// in total, evenly spaced; latency is measured from when a send was due, so that a stall is not
  /// hidden.
  double per_second = 0;
};

/// Gives every user a limit that the load never reaches.
void ConfigureUsers(std::uint16_t port, int users);

LoadResult Run(const Load& load);

}  // namespace weir::bench
