#include "telemetry/span.h"

#include <algorithm>

namespace weir::telemetry {
namespace {

char* WriteHex(std::uint64_t id, char* to) noexcept {
  for (int shift = 60; shift >= 0; shift -= 4) *to++ = "0123456789abcdef"[(id >> shift) & 0xfU];
  return to;
}

}  // namespace

TraceHeader ToHeader(const SpanContext& context) noexcept {
  TraceHeader header;
  char* to = std::copy_n("00-", 3, header.data());
  to = WriteHex(context.trace_high, to);
  to = WriteHex(context.trace_low, to);
  *to++ = '-';
  to = WriteHex(context.span, to);
  std::copy_n(context.sampled ? "-01" : "-00", 3, to);
  return header;
}

void Span::Add(std::string_view attribute, std::string_view text) noexcept {
  if (used_ == kMaxAttributes || text.empty()) return;
  const std::size_t size = std::min({text.size(), kMaxValue, kMaxText - text_used_});
  std::copy_n(text.data(), size, text_.data() + text_used_);
  attributes_[used_++] = {attribute, 0, static_cast<std::uint16_t>(text_used_),
                          static_cast<std::uint16_t>(size), true};
  text_used_ += size;
}

void Span::Add(std::string_view attribute, std::int64_t number) noexcept {
  if (used_ == kMaxAttributes) return;
  attributes_[used_++] = {attribute, number, 0, 0, false};
}

}  // namespace weir::telemetry
