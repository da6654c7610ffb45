#pragma once

#include <chrono>
#include <functional>
#include <stop_token>

#include "notify/provider.h"
#include "weir/result.h"

namespace weir::notify {

/// How often and with which pauses a delivery is retried. The pause before attempt n+1 is random,
/// up to first_pause × 2ⁿ⁻¹ and at most longest_pause, so that many senders do not retry together.
///
/// This applies to a message that fails while others of its channel are delivered. If none is, the
/// provider is down, and the message is retried until `patience` after it was accepted, or
/// `in_place` if there is no place to store it meanwhile.
struct RetryPolicy {
  int attempts = 5;
  std::chrono::milliseconds first_pause{200};
  std::chrono::milliseconds longest_pause{5000};
  std::chrono::milliseconds patience = std::chrono::hours(24);
  std::chrono::milliseconds in_place = std::chrono::minutes(10);
};

/// The longest pause after `failures` failures in a row (at least one).
std::chrono::milliseconds LongestPause(const RetryPolicy& policy, int failures) noexcept;

/// True if the provider's error means that a retry may help.
bool MayHelpToRetry(const Error& error) noexcept;

/// How long a message of this age waits for a provider that is down: a random time that increases
/// with its age, from seconds to minutes.
std::chrono::milliseconds PauseWhileDown(std::chrono::milliseconds age);

/// Sleeps; returns false if `stop` was requested meanwhile.
bool Sleep(std::chrono::milliseconds pause, const std::stop_token& stop);

/// Called for each failed attempt that another will follow: how many there were, and the error.
using OnFailure = std::function<void(int attempts, const Error& error)>;

/// Delivers, with retries according to the policy. Stops early when `stop` is requested: the error
/// is then the last one, and MayHelpToRetry is true for it.
struct Tried {
  Status status;
  int attempts = 0;
  bool settled = false;  ///< another sender delivered it during a pause, says `is_settled`
};
Tried DeliverWithRetries(Provider& provider, const Event& event, const RetryPolicy& policy,
                         const std::stop_token& stop, const OnFailure& on_failure = {},
                         const std::function<bool(const Event&)>& is_settled = {});

}  // namespace weir::notify
