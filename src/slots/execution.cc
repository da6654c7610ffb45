#include "slots/execution.h"

#include <array>
#include <string_view>

#include "slots/config.h"
#include "slots/window.h"

namespace weir::slots {
namespace {

constexpr std::array<const char*, 6> kStates = {"SCHEDULED", "CLAIMED",   "DONE",
                                                "FAILED",    "CANCELLED", "EXTERNAL"};

}  // namespace

const char* StateName(State state) noexcept { return kStates[static_cast<std::size_t>(state)]; }

std::optional<State> ParseState(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kStates.size(); ++i) {
    if (name == kStates[i]) return static_cast<State>(i);
  }
  return std::nullopt;
}

namespace {

constexpr int kMaxWindowsToCatchUp = 200'000;

// Window by window, since nothing is executed in those in which the calendar is closed.
std::optional<Millis> CaughtUpWhenOpen(const Backlog& backlog,
                                       const std::vector<WindowLoad>& windows, bool all) {
  OpenTimes open(backlog.calendar);
  const Millis size = backlog.window_size;
  std::int64_t left = backlog.due;
  Millis at = backlog.window_start;
  std::size_t i = 0;
  for (int n = 0; n < kMaxWindowsToCatchUp; ++n) {
    const std::optional<UsableWindow> usable = NextUsable(open, at, size);
    if (!usable) return std::nullopt;
    while (i < windows.size() && windows[i].start < usable->start) ++i;
    if (i == windows.size() && !all) return std::nullopt;
    const bool planned = i < windows.size() && windows[i].start == usable->start;
    const std::int64_t taken = usable->start == backlog.window_start ? backlog.granted
                               : planned                             ? windows[i].used()
                                                                     : 0;
    left -= backlog.cap - std::min(taken, backlog.cap);
    at = usable->start + size;
    if (left <= 0) return at;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Millis> CaughtUpBy(const Backlog& backlog, const std::vector<WindowLoad>& windows,
                                 bool all) {
  if (backlog.due == 0) return backlog.now;
  if (backlog.due >= kMaxCounted) return std::nullopt;
  if (backlog.calendar.any()) return CaughtUpWhenOpen(backlog, windows, all);
  // The present window's own due events are in the backlog; the number it may still grant is
  // known exactly.
  std::int64_t left = backlog.due - (backlog.cap - backlog.granted);
  Millis at = backlog.window_start + backlog.window_size;
  std::size_t i = 0;
  while (left > 0) {
    while (i < windows.size() && windows[i].start < at) ++i;
    if (i == windows.size() && !all) return std::nullopt;
    if (i == windows.size()) {  // nothing is planned from here on
      const std::int64_t more = (left + backlog.cap - 1) / backlog.cap;
      if (more > (kMaxInstant - at) / backlog.window_size) return std::nullopt;
      return at + more * backlog.window_size;
    }
    if (windows[i].start > at) {  // a stretch without plans
      const Millis stretch = (windows[i].start - at) / backlog.window_size;
      const std::int64_t needed = std::min((left + backlog.cap - 1) / backlog.cap, stretch);
      left -= needed * backlog.cap;
      at += needed * backlog.window_size;
      continue;
    }
    left -= backlog.cap - std::min(windows[i].used(), backlog.cap);
    at += backlog.window_size;
  }
  return at;
}

Status CheckClaim(const ClaimRequest& request) {
  const auto invalid = [](std::string message, std::int64_t got) {
    return Error{Code::kInvalidArgument, std::move(message) + ", got " + std::to_string(got)};
  };
  if (Status s = CheckName("config", request.config, kMaxNameBytes); !s.ok()) return s;
  if (request.max < 1 || request.max > kMaxClaim) {
    return invalid("max must be between 1 and " + std::to_string(kMaxClaim),
                   static_cast<std::int64_t>(request.max));
  }
  if (request.lease < kMinLease || request.lease > kMaxLease) {
    return invalid("leaseMs must be between " + std::to_string(kMinLease) + " and " +
                       std::to_string(kMaxLease),
                   request.lease);
  }
  if (request.ahead < 0 || request.ahead > kMaxAhead) {
    return invalid("aheadMs must be between 0 and " + std::to_string(kMaxAhead), request.ahead);
  }
  if (!request.by.empty()) return CheckName("by", request.by, kMaxNameBytes);
  return {};
}

}  // namespace weir::slots
