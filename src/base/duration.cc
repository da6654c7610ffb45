#include "base/duration.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "weir/quota.h"

namespace weir {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t nanos;
};

// From largest to smallest, the order in which they must follow each other.
constexpr std::array<Unit, 8> kUnits{{
    {"w", 604'800'000'000'000},
    {"d", 86'400'000'000'000},
    {"h", 3'600'000'000'000},
    {"m", 60'000'000'000},
    {"s", 1'000'000'000},
    {"ms", 1'000'000},
    {"us", 1'000},
    {"ns", 1},
}};

Error Bad(std::string_view text, std::string_view why) {
  std::string message("invalid duration '");
  message.append(text.substr(0, 64)).append("': ").append(why);
  return Error{Code::kInvalidArgument, std::move(message)};
}

constexpr std::string_view kExpected =
    "expected a number with a unit, such as 500ms, 10s, 1m, 2h or 1d";
constexpr std::string_view kTooLong = "longer than 100 years";

std::optional<std::int64_t> TakeNumber(std::string_view& rest) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (problem != std::errc() || number < 0) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return number;
}

// Adds number × unit; false if the sum exceeds the longest window.
bool Add(std::int64_t& total, std::int64_t number, std::int64_t unit) {
  std::int64_t part = 0;
  return !__builtin_mul_overflow(number, unit, &part) &&
         !__builtin_add_overflow(total, part, &total) && total <= kMaxWindow.count();
}

// The digits after "1." or "1,", in nanoseconds; nothing if they are finer than that or missing.
std::optional<std::int64_t> TakeFraction(std::string_view& rest) {
  std::int64_t nanos = 0;
  std::int64_t place = 1'000'000'000;
  std::size_t digits = 0;
  for (; digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9'; ++digits) {
    const int digit = rest[digits] - '0';
    place /= 10;
    if (place == 0 && digit != 0) return std::nullopt;
    nanos += digit * place;
  }
  if (digits == 0) return std::nullopt;
  rest.remove_prefix(digits);
  return nanos;
}

Result<std::chrono::nanoseconds> Finish(std::string_view text, std::int64_t total) {
  if (total == 0) return Bad(text, "must be longer than zero");
  return std::chrono::nanoseconds(total);
}

Result<std::chrono::nanoseconds> ParseIso(std::string_view text) {
  constexpr std::array<Unit, 2> kDate{{{"W", kUnits[0].nanos}, {"D", kUnits[1].nanos}}};
  constexpr std::array<Unit, 3> kTime{
      {{"H", kUnits[2].nanos}, {"M", kUnits[3].nanos}, {"S", kUnits[4].nanos}}};
  constexpr std::string_view kIso =
      "expected ISO 8601 with weeks, days, hours, minutes and seconds, such as PT1M30S, PT0.5S or "
      "P1D";
  std::string_view rest = text.substr(1);
  std::span<const Unit> units(kDate);
  std::int64_t total = 0;
  bool in_time = false;
  bool any = false;
  while (!rest.empty()) {
    if (rest.front() == 'T' && !in_time) {
      rest.remove_prefix(1);
      units = kTime;
      in_time = true;
      if (rest.empty()) return Bad(text, kIso);
      continue;
    }
    const std::optional<std::int64_t> number = TakeNumber(rest);
    if (!number || rest.empty()) return Bad(text, kIso);
    if (rest.front() == '.' || rest.front() == ',') {
      rest.remove_prefix(1);
      const std::optional<std::int64_t> fraction = TakeFraction(rest);
      // Only seconds may have a fraction.
      if (!fraction || rest.empty() || rest.front() != 'S') return Bad(text, kIso);
      if (!Add(total, *fraction, 1)) return Bad(text, kTooLong);
    }
    while (!units.empty() && units.front().name.front() != rest.front()) units = units.subspan(1);
    if (units.empty()) return Bad(text, kIso);
    if (!Add(total, *number, units.front().nanos)) return Bad(text, kTooLong);
    units = units.subspan(1);
    rest.remove_prefix(1);
    any = true;
  }
  if (!any) return Bad(text, kIso);
  return Finish(text, total);
}

// The longest unit name that `rest` begins with, so that "ms" is not taken for "m".
const Unit* TakeUnit(std::string_view& rest) {
  const Unit* best = nullptr;
  for (const Unit& unit : kUnits) {
    if (rest.starts_with(unit.name) && (best == nullptr || unit.name.size() > best->name.size())) {
      best = &unit;
    }
  }
  if (best != nullptr) rest.remove_prefix(best->name.size());
  return best;
}

}  // namespace

Result<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  if (text.empty()) return Bad(text, kExpected);
  if (text.front() == 'P') return ParseIso(text);
  std::string_view rest = text;
  std::int64_t total = 0;
  const Unit* last = nullptr;
  while (!rest.empty()) {
    const std::optional<std::int64_t> number = TakeNumber(rest);
    if (!number) return Bad(text, kExpected);
    const Unit* unit = TakeUnit(rest);
    if (unit == nullptr || (last != nullptr && unit <= last)) return Bad(text, kExpected);
    if (!Add(total, *number, unit->nanos)) return Bad(text, kTooLong);
    last = unit;
  }
  return Finish(text, total);
}

std::string FormatDuration(std::chrono::nanoseconds duration) {
  std::int64_t rest = duration.count();
  std::string text;
  for (const Unit& unit : kUnits) {
    if (rest < unit.nanos || unit.name == "w") continue;
    text += std::to_string(rest / unit.nanos);
    text += unit.name;
    rest %= unit.nanos;
  }
  return text.empty() ? "0s" : text;
}

}  // namespace weir
