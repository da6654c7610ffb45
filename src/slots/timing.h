#pragma once

#include <optional>
#include <span>
#include <vector>

#include "slots/calendar.h"
#include "slots/slot.h"

namespace weir::slots {

/// Who asks for now asks for a moment that has passed when the request is here; and clocks differ.
inline constexpr Millis kOnTheWay = 10'000;

/// When the events of one config may be placed: its calendar and what it says about the past.
///
/// Not thread-safe.
class Timing {
 public:
  Timing(const Config& config, Millis now) : config_(config), now_(now), open_(config.calendar) {}

  /// The earliest moment for an event that requests `requested`; does not decrease as requests get
  /// later. nullopt: it is in the past, which the config refuses.
  std::optional<Millis> Earliest(Millis requested) {
    if (requested < now_ - kOnTheWay && config_.past == Past::kRefuse) return std::nullopt;
    return Again(requested);
  }
  /// Like Earliest, but does not refuse the past: for events that have been accepted before.
  Millis Again(Millis requested) {
    return Opening(config_.past == Past::kKeep ? requested : std::max(requested, now_));
  }

  /// The open times to search for events that may be placed from `earliest` on; sorted. Empty only
  /// if the config has no calendar.
  std::vector<OpenTime> Open(std::span<const Millis> earliest) {
    if (!config_.calendar.any()) return {};
    std::vector<OpenTime> times = open_.List(earliest, kMaxOpenTimes);
    if (times.empty()) times.push_back({0, 0});  // never open
    return times;
  }

 private:
  Millis Opening(Millis instant) {
    if (!config_.calendar.any()) return instant;
    const std::optional<OpenTime> open = open_.At(instant);
    return open ? std::max(instant, open->from) : instant;
  }

  const Config& config_;
  const Millis now_;
  OpenTimes open_;
};

/// Whether a config's events need a Timing at all.
inline bool IsTimed(const Config& config) {
  return config.calendar.any() || config.past != Past::kKeep;
}

}  // namespace weir::slots
