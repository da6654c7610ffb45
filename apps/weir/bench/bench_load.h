#pragma once

// The load generator: connections that send as fast as they are answered (closed loop), or at times
// set by a rate (open loop). In an open loop a latency counts from the moment a question was
// due, not from when it could be sent, so that a server that stalls does not hide it
// (coordinated omission).

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/bench_wire.h"
#include "telemetry/latency_histogram.h"
#include "weir/result.h"

namespace weir::app {

struct LoadOptions {
  std::string host = "127.0.0.1";
  std::string port = "8080";
  std::function<std::unique_ptr<BenchWire>()> make_wire;
  std::size_t connections = 16;
  std::size_t pipeline = 1;  ///< questions under way per connection, in a closed loop
  double rate = 0;           ///< questions per second in all; 0: closed loop
  double seconds = 10;
  std::uint64_t requests = 0;  ///< ends after this many answers, or after `seconds`; 0: no
  std::size_t keys = 10'000;
  std::size_t threads = 1;
  /// Called about once a second with how many were answered so far.
  std::function<void(double elapsed, std::uint64_t answered)> on_progress;
};

struct LoadResult {
  double seconds = 0;
  std::uint64_t allowed = 0;
  std::uint64_t limited = 0;
  std::uint64_t errors = 0;
  std::uint64_t unanswered = 0;  ///< still under way at the end
  telemetry::LatencyHistogram latency;
  std::vector<double> per_second;

  std::uint64_t answered() const { return allowed + limited + errors; }
};

/// kUnavailable if a connection cannot be made or is lost.
Result<LoadResult> RunLoad(const LoadOptions& options);

}  // namespace weir::app
