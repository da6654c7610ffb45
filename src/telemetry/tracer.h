#pragma once

// Decides which requests are traced, and holds the queue from the threads that serve them to the
// exporter's. A span that finds it full is dropped and counted: tracing never delays a check.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "telemetry/span.h"

namespace weir::telemetry {

struct TracerOptions {
  double ratio = 0.01;                  ///< of the requests whose caller has not decided
  std::size_t queue = 2048;             ///< most spans that may wait for the exporter
  std::uint32_t max_per_second = 1000;  ///< requests; so callers cannot have all of them traced
};

/// Thread safety: any thread may call Begin and Record; only one at a time Take. Begin and Record
/// take no lock, but retry if they lose a race.
class Tracer {
 public:
  explicit Tracer(const TracerOptions& options);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// Begins the span of a request that has arrived. The sampling decision in the caller's
  /// `traceparent` applies; if it is absent or malformed, the ratio does.
  SpanContext Begin(std::string_view traceparent, Nanos now) noexcept;
  /// A child of `parent`, which must be sampled.
  static SpanContext Child(const SpanContext& parent) noexcept;

  void Record(const Span& span) noexcept;

  /// Moves up to `most` spans to the end of `out`, oldest first.
  void Take(std::vector<Span>& out, std::size_t most);
  /// Approximately how many spans are waiting.
  std::size_t waiting() const noexcept;

  std::uint64_t recorded() const noexcept { return recorded_.load(std::memory_order_relaxed); }
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  /// A place in the queue. Its turn says who may use it: the writer of that position, then the
  /// reader, then the writer one round later.
  struct Cell;

  bool MayBegin(Nanos now) noexcept;

  const std::uint64_t threshold_;  // of 2^64
  const std::uint32_t max_per_second_;
  const std::size_t size_;
  const std::unique_ptr<Cell[]> cells_;
  std::atomic<std::uint64_t> budget_{0};  // the second, and how many have begun in it
  std::atomic<std::uint64_t> recorded_{0};
  std::atomic<std::uint64_t> dropped_{0};
  alignas(64) std::atomic<std::uint64_t> written_{0};
  alignas(64) std::atomic<std::uint64_t> read_{0};
};

/// The span of a request that has arrived. `tracer` null: nothing is recorded, but a trace given by
/// the caller still appears in the log.
SpanContext ArrivedWith(std::string_view traceparent, Tracer* tracer, Nanos now) noexcept;

}  // namespace weir::telemetry
