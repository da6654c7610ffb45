#pragma once

// A timed part of a request in a distributed trace, as plain values that are copied into a queue:
// recording one allocates nothing and takes no lock.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/clock.h"

namespace weir::telemetry {

/// A span's place in its trace; IDs are numbers, written with the most significant byte first. A
/// plain value.
struct SpanContext {
  std::uint64_t trace_high = 0;
  std::uint64_t trace_low = 0;
  std::uint64_t span = 0;
  std::uint64_t parent = 0;  ///< 0: the root of the trace
  bool sampled = false;      ///< whether it is recorded; if not, the IDs are for the log, or 0
};

/// The value of a `traceparent` header.
using TraceHeader = std::array<char, 55>;
TraceHeader ToHeader(const SpanContext& context) noexcept;

/// The recorded data of a span. A plain value of fixed size: texts that do not fit are truncated.
class Span {
 public:
  enum class Kind : std::uint8_t { kInternal = 1, kServer = 2, kClient = 3 };

  struct Attribute {
    std::string_view name;  ///< a literal
    std::int64_t number = 0;
    std::uint16_t at = 0;
    std::uint16_t size = 0;
    bool text = false;
  };

  SpanContext context;
  std::string_view name;  ///< a literal
  Kind kind = Kind::kInternal;
  bool failed = false;
  Nanos start = 0;
  Nanos end = 0;

  /// `name` must be a literal; attributes after the tenth are dropped.
  void Add(std::string_view attribute, std::string_view text) noexcept;
  void Add(std::string_view attribute, std::int64_t number) noexcept;

  std::size_t size() const noexcept { return used_; }
  const Attribute& attribute(std::size_t i) const noexcept { return attributes_[i]; }
  std::string_view TextOf(const Attribute& attribute) const noexcept {
    return {text_.data() + attribute.at, attribute.size};
  }

 private:
  static constexpr std::size_t kMaxAttributes = 10;
  static constexpr std::size_t kMaxText = 384;
  static constexpr std::size_t kMaxValue = 128;

  std::array<Attribute, kMaxAttributes> attributes_;
  std::array<char, kMaxText> text_;
  std::size_t used_ = 0;
  std::size_t text_used_ = 0;
};

}  // namespace weir::telemetry
