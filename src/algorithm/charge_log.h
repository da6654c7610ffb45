#pragma once

// A list of (time, cost) in State bytes, times strictly increasing: the grants of a sliding log,
// the leases of a concurrency quota. What happens on every call is cheap: the total is in the
// header, appending writes a few bytes at the end, and expired entries are skipped by moving
// `head`; the bytes before it are freed once they are an eighth of the rest.
//
// Bytes (little-endian): the 45 bytes of the header in the order below, `head` dead bytes, then
// `count` entries, oldest first, each
//   byte 0: bits 0-2 k, bit 3 "a cost follows", bits 4-7 the lowest bits of delta
//   k bytes (8 if k is 7): the rest of delta, the nanoseconds since the entry before or `base`;
//   if flagged: cost - 2 as a varint; else the cost is 1

#include <cstdint>
#include <span>

#include "algorithm/state.h"

namespace weir::algorithm {

struct LogHeader {
  Nanos base = 0;           ///< What the first entry's delta counts from.
  Nanos newest = 0;         ///< Time of the newest entry.
  std::int64_t total = 0;   ///< Costs of all entries, expired ones too.
  std::int64_t mark = 0;    ///< Defined by the owner: see sliding_log.h, concurrency.h.
  std::uint32_t head = 0;   ///< Dead bytes between the header and the first entry.
  std::uint32_t tail = 0;   ///< Offset of the newest entry in the state's bytes.
  std::uint32_t count = 0;  ///< Entries; at least 1 in a state that is not empty.
  /// 1 if the newest entry was returned: it keeps its time, but its cost is 0, not 1.
  std::uint8_t given_back = 0;
};

inline constexpr std::uint32_t kLogHeaderBytes = 45;
/// The most entries one log keeps: bounds a key at 15 MiB, typically 5.
inline constexpr std::uint32_t kMaxLogEntries = 1U << 20;
inline constexpr std::uint32_t kMaxEntryBytes = 15;
/// Every entry at its longest, plus dead bytes.
inline constexpr std::uint32_t kMaxLogBytes =
    kLogHeaderBytes + kMaxLogEntries * kMaxEntryBytes / 8 * 10;

struct LogEntry {
  Nanos time = 0;
  std::int64_t cost = 0;
};

/// The header of a log; all zeros if the state is empty.
LogHeader ReadHeader(const State& state) noexcept;
/// The header at `bytes`.
LogHeader ReadHeader(const std::uint8_t* bytes) noexcept;

/// Reads a log from its oldest entry to the newest. Not thread-safe; the state must not change.
class LogReader {
 public:
  explicit LogReader(const State& state) noexcept;

  /// False at the end.
  bool Next(LogEntry& entry) noexcept;
  /// Offset in the state's bytes of the entry that Next reads next.
  std::uint32_t offset() const noexcept { return offset_; }
  const LogHeader& header() const noexcept { return header_; }

 private:
  const State& state_;
  LogHeader header_;
  Nanos time_ = 0;
  std::uint32_t offset_ = 0;
};

/// The oldest entries, up to some time.
struct LogPrefix {
  std::int64_t cost = 0;
  std::uint32_t count = 0;
  std::uint32_t offset = 0;  ///< Where the entry after them begins.
  Nanos last = 0;            ///< Time of the last of them, if any.
};

/// The entries whose time is at or before `time`.
LogPrefix PrefixThrough(const State& state, Nanos time) noexcept;
/// The time of the entry at which the sum of costs, starting from the oldest, reaches `cost`.
Nanos TimeAtSum(const State& state, std::int64_t cost) noexcept;
/// The time of the newest entry that has a cost. Requires total > 0.
Nanos NewestCharge(const State& state) noexcept;

/// The capacity that Append may need.
std::uint32_t CapacityForAppend(const State& state) noexcept;
/// Drops `expired` and adds `entry`, later than the newest, or of the same time and then merged
/// into it. A full log merges any entry into the newest, which then counts as later than it was.
void Append(State& state, const LogPrefix& expired, LogEntry entry, std::int64_t mark) noexcept;
/// Subtracts `cost` from the newest entries. Requires 0 < cost <= total.
void RemoveNewest(State& state, std::int64_t cost) noexcept;
/// Removes the entry of exactly that time; false if there is none.
bool RemoveAt(State& state, Nanos time) noexcept;

/// Subtracts up to `cost` from the entry of exactly that time.
void TakeAt(State& state, Nanos time, std::int64_t cost) noexcept;

/// True if the bytes are a log, whatever `mark` means to the owner.
bool ValidLog(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace weir::algorithm
