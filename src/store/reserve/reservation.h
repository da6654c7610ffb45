#pragma once

// Reservations: an estimate is charged now, and the real cost is settled later by the reservation's
// text. The text contains everything that settling needs: which buckets, under which quotas, how
// much and when. So later changes of the policies do not matter, and any node can settle.
//
// The text cannot be forged. Beside each group of charges a record is charged, a concurrency permit
// of its own, whose key is a digest of the text and whose lease is the reservation's: a forged text
// has no record, and without a record nothing is settled. Settling deletes the record, so nothing
// is settled twice, and the record expires by itself. Nothing else is stored. See
// docs/design/reservations.md.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"
#include "weir/clock.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir::store::reserve {

/// How long a reservation may be settled.
inline constexpr std::chrono::milliseconds kShortest{1};
inline constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24);
inline constexpr std::chrono::milliseconds kUsual = std::chrono::minutes(10);

/// The limits of a text: its length, and the number of buckets that it may name.
inline constexpr std::size_t kMaxText = 16 * 1024;
inline constexpr std::size_t kMaxShares = 256;

/// One bucket that a reservation has charged.
struct Share {
  std::string key = {};
  Quota quota;
  std::int64_t factor = 1;  ///< permits that a cost of 1 takes
  Nanos stamp = 0;          ///< names the charge: algorithm::StampOf

  // For the answer when it is settled.
  std::string policy = {};
  std::int64_t limit = 0;
  bool shadow = false;
};

/// Charges that go together, all or none, with the record that stands for them.
struct Group {
  std::vector<Share> shares;
  std::int64_t lease = 0;  ///< of the record; 0: not granted, so there is nothing to settle
};

/// Not thread-safe, like any value.
struct Reservation {
  std::array<std::uint8_t, 16> nonce{};
  std::chrono::milliseconds lasts = kUsual;
  std::int64_t cost = 1;
  std::vector<Group> groups;
};

/// A reservation with a new nonce.
Reservation Begin(std::chrono::milliseconds lasts, std::int64_t cost);

/// The record of a group, for the code that charges it: always one permit. Requires that the group
/// has shares, and everything of the reservation except leases and stamps.
std::string RecordKey(const Reservation& reservation, std::size_t group);
Quota RecordQuota(const Reservation& reservation);

/// kInvalidArgument if its text would be too long.
Status CheckSize(const Reservation& reservation);

/// Stores what the store decided about a group: `decisions` are those of the record and of the
/// shares, in order. Pass none if nothing was granted.
void Note(Group& group, std::chrono::milliseconds lasts, std::span<const Decision> decisions);

/// By how much a share changes when the real cost is `cost`.
std::int64_t ChangeOf(const Reservation& reservation, const Share& share, std::int64_t cost);

std::string Write(const Reservation& reservation);
/// kInvalidArgument if Write could not have produced it. Memory is bounded for any text.
Result<Reservation> Read(std::string_view text);

}  // namespace weir::store::reserve
