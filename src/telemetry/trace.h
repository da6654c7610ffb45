#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::telemetry {

/// A request's place in a distributed trace (W3C Trace Context, version 00). A plain value.
struct TraceContext {
  std::array<char, 32> trace_id{};  ///< lower-case hex digits
  std::array<char, 16> span_id{};
  bool sampled = false;

  std::string_view trace() const noexcept { return {trace_id.data(), trace_id.size()}; }
  std::string_view span() const noexcept { return {span_id.data(), span_id.size()}; }

  /// The same trace with a new span ID, to pass on.
  TraceContext Child() const;
  /// As the header's value.
  std::string ToHeader() const;
};

/// Parses a `traceparent` header; nullopt if it is absent or malformed, which W3C says to ignore.
std::optional<TraceContext> ParseTraceParent(std::string_view header) noexcept;

/// Not 0, and as random as RandomId.
std::uint64_t RandomNumber() noexcept;

/// 16 random hex digits, for request IDs. Thread-safe; unique enough to find a line in a log, not
/// a secret.
std::array<char, 16> RandomId() noexcept;

}  // namespace weir::telemetry
