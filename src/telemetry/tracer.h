#pragma once

// Which requests are traced, and the queue from the threads that serve them to the one that
// exports. A span that finds the queue full is dropped and counted: tracing never holds up a check.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "telemetry/span.h"

namespace weir::telemetry {

struct TracerOptions {
  double ratio = 0.01;                  ///< of the requests that no caller has decided about
  std::size_t queue = 2048;             ///< spans that wait for the exporter, at most
  std::uint32_t max_per_second = 1000;  ///< requests; so that no caller can have all traced
};

/// Thread safety: any thread may call Begin and Record, one at a time Take. Wait-free for the
/// former but for a failed race for a place in the queue, which is tried again.
class Tracer {
 public:
  explicit Tracer(const TracerOptions& options);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// A request has come in. What the caller's `traceparent` says of sampling holds; without one, or
  /// with one that is malformed, the ratio does.
  SpanContext Begin(std::string_view traceparent, Nanos now) noexcept;
  /// A part of `parent`, which is sampled.
  static SpanContext Child(const SpanContext& parent) noexcept;

  void Record(const Span& span) noexcept;

  /// Moves up to `most` spans to the end of `out`, oldest first.
  void Take(std::vector<Span>& out, std::size_t most);
  /// About how many wait.
  std::size_t waiting() const noexcept;

  std::uint64_t recorded() const noexcept { return recorded_.load(std::memory_order_relaxed); }
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  /// A place of the queue. Its turn says who may use it: the writer whose position it is, then the
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

/// The span of a request that has come in. `tracer` null: nothing is recorded, but a trace that the
/// caller has named is still found in the log.
SpanContext ArrivedWith(std::string_view traceparent, Tracer* tracer, Nanos now) noexcept;

}  // namespace weir::telemetry
