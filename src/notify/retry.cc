#include "notify/retry.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>

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

bool Sleep(std::chrono::milliseconds pause, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  woken.wait_for(lock, stop, pause, [] { return false; });
  return !stop.stop_requested();
}

Status DeliverWithRetries(Provider& provider, const Event& event, const RetryPolicy& policy,
                          const std::stop_token& stop) {
  for (int failures = 1;; ++failures) {
    Status delivered = provider.Deliver(event);
    if (delivered || !MayHelpToRetry(delivered.error())) return delivered;
    if (failures >= policy.attempts) return delivered;
    if (!Sleep(Jitter(LongestPause(policy, failures)), stop)) return delivered;
  }
}

}  // namespace weir::notify
