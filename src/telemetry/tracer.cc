#include "telemetry/tracer.h"

#include <algorithm>

#include "base/number.h"
#include "telemetry/trace.h"

namespace weir::telemetry {
namespace {

/// `digits` must have been checked.
std::uint64_t FromHex(std::string_view digits) noexcept {
  return ParseNumber<std::uint64_t>(digits, 16).value_or(0);
}

SpanContext ContextUnder(const TraceContext& parent) noexcept {
  SpanContext context;
  context.trace_high = FromHex(parent.trace().substr(0, 16));
  context.trace_low = FromHex(parent.trace().substr(16));
  context.parent = FromHex(parent.span());
  context.span = RandomNumber();
  return context;
}

std::uint64_t ThresholdOf(double ratio) noexcept {
  constexpr double kRange = 18446744073709551616.0;  // 2^64
  if (ratio >= 1) return ~std::uint64_t{0};
  return static_cast<std::uint64_t>(std::max(ratio, 0.0) * kRange);
}

}  // namespace

struct Tracer::Cell {
  std::atomic<std::uint64_t> turn{0};
  Span span;
};

Tracer::Tracer(const TracerOptions& options)
    : threshold_(ThresholdOf(options.ratio)),
      max_per_second_(options.max_per_second),
      size_(std::max<std::size_t>(options.queue, 2)),
      cells_(std::make_unique<Cell[]>(size_)) {
  for (std::size_t i = 0; i < size_; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
}

Tracer::~Tracer() = default;

bool Tracer::MayBegin(Nanos now) noexcept {
  constexpr std::uint64_t kCountBits = 24;
  constexpr std::uint64_t kCount = (std::uint64_t{1} << kCountBits) - 1;
  const std::uint64_t second = static_cast<std::uint64_t>(now / 1'000'000'000) << kCountBits;
  std::uint64_t seen = budget_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t next = (seen & ~kCount) == second ? seen + 1 : second + 1;
    if ((next & kCount) > max_per_second_ || (next & kCount) == kCount) return false;
    if (budget_.compare_exchange_weak(seen, next, std::memory_order_relaxed)) return true;
  }
}

SpanContext Tracer::Begin(std::string_view traceparent, Nanos now) noexcept {
  SpanContext context;
  const auto parent = traceparent.empty() ? std::nullopt : ParseTraceParent(traceparent);
  const bool wanted = parent ? parent->sampled : RandomNumber() <= threshold_ && threshold_ != 0;
  if (!wanted || !MayBegin(now)) return context;
  if (parent) {
    context = ContextUnder(*parent);
  } else {
    context.span = RandomNumber();
    context.trace_high = RandomNumber();
    context.trace_low = RandomNumber();
  }
  context.sampled = true;
  return context;
}

SpanContext Tracer::Child(const SpanContext& parent) noexcept {
  SpanContext child = parent;
  child.parent = parent.span;
  child.span = RandomNumber();
  return child;
}

SpanContext ArrivedWith(std::string_view traceparent, Tracer* tracer, Nanos now) noexcept {
  SpanContext context;
  if (tracer != nullptr) context = tracer->Begin(traceparent, now);
  if (context.sampled || traceparent.empty()) return context;
  if (const auto parent = ParseTraceParent(traceparent)) {
    context = ContextUnder(*parent);
  }
  return context;
}

void Tracer::Record(const Span& span) noexcept {
  std::uint64_t at = written_.load(std::memory_order_relaxed);
  for (;;) {
    Cell& cell = cells_[at % size_];
    const std::uint64_t turn = cell.turn.load(std::memory_order_acquire);
    if (turn < at) {  // still holds the span of the previous round
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (turn == at) {
      if (written_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
        cell.span = span;
        cell.turn.store(at + 1, std::memory_order_release);
        recorded_.fetch_add(1, std::memory_order_relaxed);
        return;
      }
    } else {
      at = written_.load(std::memory_order_relaxed);
    }
  }
}

void Tracer::Take(std::vector<Span>& out, std::size_t most) {
  std::uint64_t at = read_.load(std::memory_order_relaxed);
  for (; most > 0; --most, ++at) {
    Cell& cell = cells_[at % size_];
    if (cell.turn.load(std::memory_order_acquire) != at + 1) break;
    out.push_back(cell.span);
    cell.turn.store(at + size_, std::memory_order_release);
  }
  read_.store(at, std::memory_order_relaxed);
}

std::size_t Tracer::waiting() const noexcept {
  const std::uint64_t read = read_.load(std::memory_order_relaxed);
  const std::uint64_t written = written_.load(std::memory_order_relaxed);
  return written > read ? static_cast<std::size_t>(written - read) : 0;
}

}  // namespace weir::telemetry
