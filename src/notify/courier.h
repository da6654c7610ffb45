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

/// An event to be delivered.
struct Parcel {
  Event event = {};
  Fate fate = Fate::kWaiting;
  int attempts = 0;
  std::string reason = {};
  Micros not_before = 0;  ///< kDelayed
  /// kDuplicate: it was delivered, but that is not yet recorded under its ID. It was delivered
  /// under another one (Event::earlier_id), or could not be reported at the time.
  bool unrecorded = false;

  bool dead() const { return fate == Fate::kMalformed || fate == Fate::kUndeliverable; }
  /// The report about it, unless it waits or is a duplicate of the same ID.
  Delivery ToDelivery() const;
};

/// Whether an event with the ID earlier_id, created at that time, is the same notification.
bool IsSame(Micros earlier_created_at, const Event& event) noexcept;

/// For the statistics; must not be called with kWaiting, which has none.
DeliveryStats::Result ResultOf(Fate fate) noexcept;

/// Sets kDelayed or kOptedOut if the user's preferences require it.
void Respect(const Preferences& preferences, Micros now, Parcel& parcel);

struct CourierOptions {
  /// Users whose messages are delivered at the same time; one user's keep their order.
  std::size_t workers = 1;
  RetryPolicy retry = {};
  /// Whether kDelayed parcels are stored. If not, a message waits here for a provider that is down.
  bool may_delay = false;
  /// Called before each delivery: whether another sender has delivered it meanwhile. Runs on any
  /// worker.
  std::function<bool(const Event&)> is_settled = {};
  /// Called for each failed attempt that another will follow. Runs on any worker.
  std::function<void(const Delivery&)> on_failure = {};
  /// Called every second while a message waits here. Runs on any worker.
  std::function<void()> on_wait = {};
};

/// Delivers parcels with a provider: users in parallel, with retries.
///
/// Not thread-safe: one thread calls Deliver. Any thread may request the stop.
class Courier {
 public:
  /// All arguments must outlive this.
  Courier(Provider& provider, DeliveryStats& stats, const Clock& clock, CourierOptions options,
          std::stop_token stop);

  /// Decides the fate of each waiting parcel. After a stop request, failed deliveries are
  /// not retried, and parcels not decided by then stay waiting.
  void Deliver(std::span<Parcel* const> parcels);

 private:
  bool IsOver(Parcel& parcel) const;
  void DeliverOne(Parcel& parcel);
  Tried Try(const Parcel& parcel);
  /// False if a stop was requested.
  bool Wait(std::chrono::milliseconds pause) const;
  /// Whether it could be put off: its provider is down, and it is not too old.
  bool PutOff(Parcel& parcel, std::string reason) const;

  Provider& provider_;
  DeliveryStats& stats_;
  const Clock& clock_;
  const CourierOptions options_;
  const std::stop_token stop_;
  ProviderHealth health_;
};

}  // namespace weir::notify
