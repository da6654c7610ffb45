#include "notify/retry.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>
#include <utility>

namespace weir::notify {
namespace {

std::chrono::milliseconds Jitter(std::chrono::milliseconds longest) {
  static thread_local std::minstd_rand random{std::random_device{}()};
  return std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(0, longest.count())(random));
}

}  // namespace

std::chrono::milliseconds LongestPause(const RetryPolicy& policy, int failures) noexcept {
  std::chrono::milliseconds pause = policy.first_pause;
  for (int i = 1; i < failures && pause < policy.longest_pause; ++i) pause *= 2;
  return std::min(pause, policy.longest_pause);
}

bool MayHelpToRetry(const Error& error) noexcept {
  return error.code == Code::kUnavailable || error.code == Code::kDeadlineExceeded;
}

std::chrono::milliseconds PauseWhileDown(std::chrono::milliseconds age) {
  using std::chrono::milliseconds;
  const milliseconds longest =
      std::clamp<milliseconds>(age / 4, std::chrono::seconds(5), std::chrono::minutes(5));
  return longest / 2 + Jitter(longest / 2);
}

bool Sleep(std::chrono::milliseconds pause, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  woken.wait_for(lock, stop, pause, [] { return false; });
  return !stop.stop_requested();
}

Tried DeliverWithRetries(Provider& provider, const Event& event, const RetryPolicy& policy,
                         const std::stop_token& stop, const OnFailure& on_failure,
                         const std::function<bool(const Event&)>& is_settled) {
  for (int attempts = 1;; ++attempts) {
    Status delivered = provider.Deliver(event);
    const bool again = !delivered && MayHelpToRetry(delivered.error());
    if (!again || attempts >= policy.attempts) return {std::move(delivered), attempts};
    if (on_failure) on_failure(attempts, delivered.error());
    if (!Sleep(Jitter(LongestPause(policy, attempts)), stop)) {
      return {std::move(delivered), attempts};
    }
    if (is_settled && is_settled(event)) return {std::move(delivered), attempts, true};
    // That may have waited for a database, and a stop leaves the result open.
    if (stop.stop_requested()) return {std::move(delivered), attempts};
  }
}

}  // namespace weir::notify
