#pragma once

#include <chrono>
#include <functional>
#include <stop_token>

#include "notify/provider.h"
#include "weir/result.h"

namespace weir::notify {

/// How often and with which pauses a delivery is retried. The pause before attempt n+1 is random,
/// up to first_pause × 2ⁿ⁻¹ and at most longest_pause, so that many senders do not return at once.
///
/// So much for a message that fails while others of its channel are delivered. If none is, the
/// provider is down, and the message is tried again for `patience` after it was accepted, or for
/// `in_place` where there is nothing that keeps it meanwhile.
struct RetryPolicy {
  int attempts = 5;
  std::chrono::milliseconds first_pause{200};
  std::chrono::milliseconds longest_pause{5000};
  std::chrono::milliseconds patience = std::chrono::hours(24);
  std::chrono::milliseconds in_place = std::chrono::minutes(10);
};

/// The longest pause after `failures` failures in a row (at least one).
std::chrono::milliseconds LongestPause(const RetryPolicy& policy, int failures) noexcept;

/// True if the provider says that trying again may help.
bool MayHelpToRetry(const Error& error) noexcept;

/// How long a message of this age waits for a provider that is down: a random time, the longer the
/// older it is, from seconds to minutes.
std::chrono::milliseconds PauseWhileDown(std::chrono::milliseconds age);

/// Sleeps; false if `stop` was asked for meanwhile.
bool Sleep(std::chrono::milliseconds pause, const std::stop_token& stop);

/// Told of an attempt that failed and will be followed by another: how many there were, and why.
using OnFailure = std::function<void(int attempts, const Error& error)>;

/// Delivers, with retries as the policy says. Stops early when `stop` is requested: the error is
/// then the last one, and MayHelpToRetry is true for it.
struct Tried {
  Status status;
  int attempts = 0;
  bool settled = false;  ///< `is_settled` says that another has delivered it during a pause
};
Tried DeliverWithRetries(Provider& provider, const Event& event, const RetryPolicy& policy,
                         const std::stop_token& stop, const OnFailure& on_failure = {},
                         const std::function<bool(const Event&)>& is_settled = {});

}  // namespace weir::notify
