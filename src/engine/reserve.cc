// Engine::Reserve and Settle: a charge, and with it a separate permit that only the settlement can
// release, so that nothing is settled twice.

#include <algorithm>
#include <array>
#include <random>

#include "algorithm/settle.h"
#include "weir/engine.h"

namespace weir {
namespace {

// Restored tables contain records of earlier processes, so a counter would not be unique.
std::string RecordName() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  thread_local std::random_device random;
  std::string name = "|%reserved:";
  for (int i = 0; i < 4; ++i) {
    for (std::uint32_t word = random(), digit = 0; digit < 8; ++digit, word >>= 4U) {
      name += kDigits[word & 15U];
    }
  }
  return name;
}

Quota RecordQuota(std::chrono::nanoseconds lasts) {
  return *Quota::Concurrency(1, std::clamp(lasts, std::chrono::nanoseconds(1), kMaxWindow));
}

}  // namespace

Reservation Engine::Reserve(std::string_view key, const Quota& quota, std::int64_t estimate,
                            std::chrono::nanoseconds lasts) {
  Reservation reservation{.decision = {},
                          .key = std::string(key),
                          .quota = quota,
                          .estimate = std::max<std::int64_t>(estimate, 1),
                          .record = RecordName(),
                          .lasts = lasts};
  const Quota record = RecordQuota(lasts);
  const std::array<Ask, 2> asks = {Ask{reservation.record, 1, &record},
                                   Ask{key, reservation.estimate, &quota}};
  std::array<Decision, 2> decisions;
  const bool granted = TryReserveAll(asks, record.window(), decisions);
  reservation.decision = decisions[1];
  if (quota.algorithm() != Algorithm::kConcurrency) reservation.decision.lease = 0;
  if (!granted) return reservation;
  reservation.lease = decisions[0].lease;
  const Nanos now = reservation.lease - record.window().count();
  reservation.stamp = algorithm::StampOf(quota, now, decisions[1]);
  return reservation;
}

bool Engine::Settle(const Reservation& reservation, std::int64_t cost) {
  if (reservation.lease == 0) return false;
  const Quota record = RecordQuota(reservation.lasts);
  if (!Release(reservation.record, record, reservation.lease)) return false;
  Reset(reservation.record);  // it is never charged again and would only take up room
  const std::int64_t change = std::clamp<std::int64_t>(cost, 0, kMaxLimit) - reservation.estimate;
  Adjust(reservation.key, reservation.quota, reservation.stamp, change);
  return true;
}

}  // namespace weir
