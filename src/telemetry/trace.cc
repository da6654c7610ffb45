#include "telemetry/trace.h"

#include <algorithm>
#include <cstdint>
#include <random>

namespace weir::telemetry {
namespace {

constexpr std::size_t kHeaderLength = 55;  // 00-<32>-<16>-<2>

bool IsHex(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsZero(std::string_view text) noexcept {
  return text.find_first_not_of('0') == std::string_view::npos;
}

}  // namespace

std::uint64_t RandomNumber() noexcept {
  thread_local std::mt19937_64 generator = [] {
    std::random_device device;
    return std::mt19937_64((std::uint64_t{device()} << 32U) | device());
  }();
  std::uint64_t number = 0;
  while (number == 0) number = generator();  // all zeros would mean "none"
  return number;
}

std::array<char, 16> RandomId() noexcept {
  std::uint64_t bits = RandomNumber();
  std::array<char, 16> id{};
  for (char& digit : id) {
    digit = "0123456789abcdef"[bits & 0xfU];
    bits >>= 4U;
  }
  return id;
}

std::optional<TraceContext> ParseTraceParent(std::string_view header) noexcept {
  // A later version may append fields after another dash; ff is not a valid version.
  if (header.size() < kHeaderLength || header[2] != '-' || header[35] != '-' || header[52] != '-') {
    return std::nullopt;
  }
  const std::string_view version = header.substr(0, 2);
  const std::string_view trace = header.substr(3, 32);
  const std::string_view span = header.substr(36, 16);
  const std::string_view flags = header.substr(53, 2);
  if (!IsHex(version) || !IsHex(trace) || !IsHex(span) || !IsHex(flags)) return std::nullopt;
  if (version == "ff" || IsZero(trace) || IsZero(span)) return std::nullopt;
  if (header.size() > kHeaderLength && (version == "00" || header[kHeaderLength] != '-')) {
    return std::nullopt;
  }
  TraceContext context;
  std::copy(trace.begin(), trace.end(), context.trace_id.begin());
  std::copy(span.begin(), span.end(), context.span_id.begin());
  const char low = flags[1];
  context.sampled = ((low >= 'a' ? low - 'a' + 10 : low - '0') & 1) != 0;
  return context;
}

TraceContext TraceContext::Child() const {
  TraceContext child = *this;
  child.span_id = RandomId();
  return child;
}

std::string TraceContext::ToHeader() const {
  std::string header = "00-";
  header.append(trace()).append("-").append(span()).append(sampled ? "-01" : "-00");
  return header;
}

}  // namespace weir::telemetry
