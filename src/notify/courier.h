#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>

#include "notify/delivery_log.h"
#include "notify/delivery_stats.h"
#include "notify/event.h"
#include "notify/preferences.h"
#include "notify/provider.h"
#include "notify/provider_health.h"
#include "notify/retry.h"
#include "weir/clock.h"

namespace weir::notify {

enum class Fate : std::uint8_t {
  kWaiting,  ///< not decided; left for the next start
  kDelivered,
  kDuplicate,
  kMalformed,
  kUndeliverable,
  kDelayed,  ///< quiet hours
  kOptedOut,
};

/// An event on its last mile.
struct Parcel {
  Event event = {};
  Fate fate = Fate::kWaiting;
  int attempts = 0;
  std::string reason = {};
  Micros not_before = 0;  ///< kDelayed
  /// kDuplicate: it was delivered, and that is not recorded under its id yet. It was delivered
  /// under another one (Event::earlier_id), or the report could not be made then.
  bool unrecorded = false;

  bool dead() const { return fate == Fate::kMalformed || fate == Fate::kUndeliverable; }
  /// What to report, unless it waits or is a duplicate of the same id.
  Delivery ToDelivery() const;
};

/// Whether an event of its earlier_id, created then, is the same notification.
bool IsSame(Micros earlier_created_at, const Event& event) noexcept;

/// For the statistics; kWaiting has none and must not be asked for.
DeliveryStats::Result ResultOf(Fate fate) noexcept;

/// Decides kDelayed or kOptedOut if the user wishes so.
void Respect(const Preferences& preferences, Micros now, Parcel& parcel);

struct CourierOptions {
  /// Users whose messages are delivered at the same time; one user's keep their order.
  std::size_t workers = 1;
  RetryPolicy retry = {};
  /// Whether what is kDelayed is kept. Otherwise a message waits here for a provider that is down.
  bool may_delay = false;
  /// Asked before each delivery: whether somebody else has made it meanwhile. On any of the
  /// workers.
  std::function<bool(const Event&)> is_settled = {};
  /// Told of each attempt that failed and that another will follow. On any of the workers.
  std::function<void(const Delivery&)> on_failure = {};
  /// Told every second while a message waits here. On any of the workers.
  std::function<void()> on_wait = {};
};

/// Delivers parcels with a provider: users in parallel, with retries.
///
/// Not thread-safe: one thread calls Deliver. The stop may be asked for from any thread.
class Courier {
 public:
  /// What is given must outlive this.
  Courier(Provider& provider, DeliveryStats& stats, const Clock& clock, CourierOptions options,
          std::stop_token stop);

  /// Decides the fate of each parcel that waits. Once stop is asked for, deliveries that fail are
  /// not tried again, and what is not decided then keeps waiting.
  void Deliver(std::span<Parcel* const> parcels);

 private:
  bool IsOver(Parcel& parcel) const;
  void DeliverOne(Parcel& parcel);
  Tried Try(const Parcel& parcel);
  /// False if a stop was asked for.
  bool Wait(std::chrono::milliseconds pause) const;
  /// Whether there was a reason to put it off: its provider is down, and it is not too old.
  bool PutOff(Parcel& parcel, std::string reason) const;

  Provider& provider_;
  DeliveryStats& stats_;
  const Clock& clock_;
  const CourierOptions options_;
  const std::stop_token stop_;
  ProviderHealth health_;
};

}  // namespace weir::notify
