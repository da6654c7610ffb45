#include "notify/courier.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weir::notify {
namespace {

using Steady = std::chrono::steady_clock;

}  // namespace

bool IsSame(Micros earlier_created_at, const Event& event) noexcept {
  return earlier_created_at > 0 && event.created_at - earlier_created_at < kKeyLifetime;
}

Delivery Parcel::ToDelivery() const {
  Delivery end{.event = event, .attempts = attempts, .error = reason};
  switch (fate) {
    case Fate::kUndeliverable:
    case Fate::kMalformed:
      end.state = MessageState::kDead;
      break;
    case Fate::kDelayed:
      end.state = MessageState::kQueued;
      end.not_before = not_before;
      break;
    case Fate::kOptedOut:
      end.state = MessageState::kDropped;
      break;
    case Fate::kWaiting:
    case Fate::kDelivered:
    case Fate::kDuplicate:
      end.state = MessageState::kSent;
      break;
  }
  return end;
}

DeliveryStats::Result ResultOf(Fate fate) noexcept {
  switch (fate) {
    case Fate::kMalformed:
    case Fate::kUndeliverable:
      return DeliveryStats::kDead;
    case Fate::kDuplicate:
      return DeliveryStats::kDuplicate;
    case Fate::kDelayed:
      return DeliveryStats::kDelayed;
    case Fate::kOptedOut:
      return DeliveryStats::kDropped;
    case Fate::kWaiting:
    case Fate::kDelivered:
      break;
  }
  return DeliveryStats::kDelivered;
}

void Respect(const Preferences& preferences, Micros now, Parcel& parcel) {
  if (preferences.OptedOut(parcel.event.channel)) {
    parcel.fate = Fate::kOptedOut;
    parcel.reason = "the user has opted out of " + parcel.event.channel;
    return;
  }
  if (!preferences.quiet) return;
  const Micros end = EndOfQuiet(*preferences.quiet, now);
  if (end <= now) return;
  parcel.fate = Fate::kDelayed;
  parcel.not_before = end;
}

Courier::Courier(Provider& provider, DeliveryStats& stats, const Clock& clock,
                 CourierOptions options, std::stop_token stop)
    : provider_(provider),
      stats_(stats),
      clock_(clock),
      options_(std::move(options)),
      stop_(std::move(stop)) {}

Tried Courier::Try(const Parcel& parcel) {
  const auto failed = [&](int attempts, const Error& error) {
    health_.Failed(parcel.event.channel);
    stats_.Retry();
    if (!options_.on_failure) return;
    options_.on_failure({.event = parcel.event,
                         .state = MessageState::kFailed,
                         .attempts = attempts,
                         .error = error.message});
  };
  Tried tried = DeliverWithRetries(provider_, parcel.event, options_.retry, stop_, failed,
                                   options_.is_settled);
  if (tried.status) {
    health_.Delivered(parcel.event.channel, Steady::now());
  } else if (MayHelpToRetry(tried.status.error())) {
    health_.Failed(parcel.event.channel);
  }
  return tried;
}

bool Courier::PutOff(Parcel& parcel, std::string reason) const {
  if (!options_.may_delay) return false;
  const Micros now = NowMicros(clock_);
  const std::chrono::microseconds age(std::max<Micros>(now - parcel.event.created_at, 0));
  if (age >= options_.retry.patience) return false;
  const auto pause = PauseWhileDown(std::chrono::duration_cast<std::chrono::milliseconds>(age));
  parcel.fate = Fate::kDelayed;
  parcel.not_before = now + std::chrono::microseconds(pause).count();
  parcel.reason = std::move(reason);
  return true;
}

bool Courier::Wait(std::chrono::milliseconds pause) const {
  constexpr std::chrono::milliseconds kSlice{1000};
  for (; pause.count() > 0; pause -= std::min(pause, kSlice)) {
    if (options_.on_wait) options_.on_wait();
    if (!Sleep(std::min(pause, kSlice), stop_)) return false;
  }
  return true;
}

/// Whether it need not be delivered here: another sender has delivered it, or there was a stop,
/// which may have left that open.
bool Courier::IsOver(Parcel& parcel) const {
  if (stop_.stop_requested()) return true;
  if (options_.is_settled && options_.is_settled(parcel.event)) {
    parcel.fate = Fate::kDuplicate;
    return true;
  }
  return stop_.stop_requested();
}

void Courier::DeliverOne(Parcel& parcel) {
  if (IsOver(parcel)) return;
  // Taken after IsOver, which may take long: deliveries during it say nothing about now.
  const Steady::time_point began = Steady::now();
  // Checked again after each pause: it may have been long, and another may have delivered it.
  for (bool first = true; first || !IsOver(parcel); first = false) {
    if (!health_.MayTry(parcel.event.channel, Steady::now()) &&
        PutOff(parcel, "the provider is down")) {
      return;
    }
    const auto [delivered, attempts, settled] = Try(parcel);
    parcel.attempts += attempts;
    if (settled) {
      parcel.fate = Fate::kDuplicate;
      return;
    }
    if (delivered) {
      health_.Forget(parcel.event.id);
      parcel.fate = Fate::kDelivered;
      parcel.reason.clear();
      if (parcel.event.created_at > 0) stats_.Took(NowMicros(clock_) - parcel.event.created_at);
      return;
    }
    const bool again = MayHelpToRetry(delivered.error());
    if (stop_.stop_requested() && again) return;
    const bool down =
        again && !health_.DeliveredOthers(parcel.event.channel, parcel.event.id, began);
    if (down && PutOff(parcel, delivered.error().message)) {
      stats_.Retry();
      return health_.PutOff(parcel.event.id, Steady::now());
    }
    const auto waited =
        std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - began);
    if (!down || options_.may_delay || waited >= options_.retry.in_place) {
      health_.Forget(parcel.event.id);
      parcel.fate = Fate::kUndeliverable;
      parcel.reason = delivered.error().message;
      return;
    }
    if (!Wait(PauseWhileDown(waited))) return;
  }
}

void Courier::Deliver(std::span<Parcel* const> parcels) {
  std::unordered_map<std::string_view, Parcel*> first;
  std::vector<std::pair<Parcel*, Parcel*>> repeated;
  std::vector<std::vector<Parcel*>> lanes(std::max<std::size_t>(options_.workers, 1));
  Micros oldest = 0;
  for (Parcel* parcel : parcels) {
    if (parcel->fate != Fate::kWaiting) continue;
    const Micros at = parcel->event.created_at;
    if (at > 0 && (oldest == 0 || at < oldest)) oldest = at;
    const auto earlier = first.find(parcel->event.earlier_id);
    if (earlier != first.end() && IsSame(earlier->second->event.created_at, parcel->event)) {
      repeated.emplace_back(parcel, earlier->second);
      continue;
    }
    const auto [found, fresh] = first.emplace(parcel->event.id, parcel);
    if (!fresh) {
      repeated.emplace_back(parcel, found->second);
      continue;
    }
    lanes[std::hash<std::string>{}(parcel->event.user_id) % lanes.size()].push_back(parcel);
  }
  stats_.SetOldest(oldest);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < lanes.size(); ++i) {
      if (lanes[i].empty()) continue;
      threads.emplace_back([this, &lane = lanes[i]] {
        for (Parcel* parcel : lane) DeliverOne(*parcel);
      });
    }
    for (Parcel* parcel : lanes[0]) DeliverOne(*parcel);
  }
  stats_.SetOldest(0);
  for (const auto& [parcel, original] : repeated) {
    if (original->fate == Fate::kWaiting) continue;
    parcel->fate = Fate::kDuplicate;
    const bool delivered = original->fate == Fate::kDelivered || original->fate == Fate::kDuplicate;
    parcel->unrecorded = delivered && original->event.id != parcel->event.id;
  }
}

}  // namespace weir::notify
