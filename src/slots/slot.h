#pragma once

// The basic types of slots: a config divides time into windows, and each event gets a place in one.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "slots/calendar.h"
#include "slots/time.h"

namespace weir::slots {

inline constexpr std::size_t kMaxBatch = 10'000;
inline constexpr std::size_t kMaxEventIdBytes = 200;
inline constexpr std::size_t kMaxNameBytes = 100;  ///< configs and tenants
inline constexpr std::size_t kMaxTenants = 64;
inline constexpr std::size_t kMaxPayloadBytes = 16 * 1024;
inline constexpr std::int64_t kMaxPerWindow = 1'000'000'000;
inline constexpr Millis kMaxWindowSize = Millis{31} * 24 * 3'600'000;
inline constexpr std::int64_t kMaxHeadroom = 1'000'000;
inline constexpr std::int64_t kMaxWeight = 1'000'000;
inline constexpr std::int64_t kDefaultHeadroom = 100;
/// The class of all tenants that a config does not name, and of events without a tenant.
inline constexpr const char* kOtherTenants = "*";

/// How a config treats a requested time in the past. The numbers are stored.
enum class Past : std::uint8_t {
  kKeep = 0,    ///< a slot in the past, which is due immediately
  kNow = 1,     ///< moved to now
  kRefuse = 2,  ///< no slot, unless it is only kOnTheWay ago: then as kNow
};

/// One version of a named config. Checked by CheckConfig before it reaches a store.
struct Config {
  std::string name = {};
  std::int64_t version = 0;  ///< from 1; assigned by the store
  Millis window_size = 0;
  std::int64_t max_per_window = 0;
  /// How many windows past the first one that is not full the search may go.
  std::int64_t headroom = kDefaultHeadroom;
  /// In how many windows, from the first one that is not full, tenants are held to their shares.
  std::int64_t fair_windows = kDefaultHeadroom;
  /// Tenant → weight, sorted by name; includes kOtherTenants unless it is empty, which means no
  /// shares.
  std::vector<std::pair<std::string, std::int64_t>> tenants = {};
  bool active = true;
  Millis created_at = 0;
  Calendar calendar = {};  ///< when events may be executed; none: at all times
  Past past = Past::kKeep;

  friend bool operator==(const Config&, const Config&) = default;
};

/// One event that wants a place at or after `requested`.
struct Ask {
  std::string event_id = {};
  std::string config = {};
  Millis requested = 0;
  std::string tenant = {};
  std::int64_t random = 0;   ///< not negative; decides the place within the window
  std::string payload = {};  ///< opaque; kept with the event and passed to the executor
};

/// Moves an event that has or had a slot to another slot.
struct MoveRequest {
  std::string event_id = {};
  std::string config = {};               ///< empty: its own
  std::optional<Millis> requested = {};  ///< nullopt: the time it last requested
  std::int64_t random = 0;               ///< as in Ask
};

/// An event's slot. `scheduled` is in the window, and never before `requested`.
struct Slot {
  std::string event_id = {};
  std::string config = {};
  std::string tenant = {};
  Millis requested = 0;
  Millis window_start = 0;
  Millis scheduled = 0;

  friend bool operator==(const Slot&, const Slot&) = default;
};

/// The numbers are those of the SQL functions in postgres/.
enum class Outcome : std::uint8_t {
  kNew = 0,
  kExisting = 1,       ///< the event already had this slot, from the same request
  kExhausted = 2,      ///< no window within the search limit has room
  kUnknownConfig = 3,  ///< no active config of this name
  // 4 is used within the PostgreSQL store only: ask again.
  kConflict = 5,    ///< the id belongs to another event: its config, time, tenant or payload differ
  kCancelled = 6,   ///< this event was cancelled; only Restore gives it a slot again
  kPast = 7,        ///< the requested time is in the past, which the config refuses
  kUnanswered = 8,  ///< too many different asks of its id in one batch: unknown; ask again
};

/// Whether the event already had a row: then the answer's slot is that row's.
constexpr bool WasThere(Outcome outcome) noexcept {
  return outcome == Outcome::kExisting || outcome == Outcome::kConflict ||
         outcome == Outcome::kCancelled;
}

/// The slot is valid for kNew and if WasThere.
struct Answer {
  Outcome outcome = Outcome::kNew;
  Slot slot = {};
};

/// The load of one window.
struct WindowLoad {
  Millis start = 0;
  Millis size = 0;
  std::int64_t count = 0;    ///< slots of this window
  std::int64_t carried = 0;  ///< slots of an earlier window size that fall into this one
  bool open = true;

  std::int64_t used() const noexcept { return count + carried; }
};

/// What Verify found wrong; each example names the window.
struct Findings {
  std::int64_t windows = 0;  ///< windows that hold events; empty ones are checked as well
  std::int64_t slots = 0;
  std::int64_t problems = 0;
  std::vector<std::string> examples = {};  ///< the first few
};

}  // namespace weir::slots
