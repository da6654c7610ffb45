#include "store/sql/mark.h"

#include <random>
#include <utility>

namespace weir::store::sql {

bool Mark::Due() {
  const auto now = std::chrono::steady_clock::now();
  if (now < due_) return false;
  due_ = now + interval_;
  return true;
}

std::string Mark::NewState() {
  constexpr std::size_t kBytes = 16;
  // A version, a section tag that no algorithm has, and its size (row.h).
  std::string state = {'\x01', '\xfe', static_cast<char>(kBytes)};
  std::random_device random;
  for (std::size_t i = 0; i < kBytes; ++i) state += static_cast<char>(random());
  return state;
}

void Mark::Take(std::string_view state, std::int64_t number) {
  const bool lost = !state_.empty() && (state != state_ || number <= number_);
  state_ = state;
  number_ = number;
  if (lost) watcher_.lost();
}

void Mark::Fail(const Error& error) {
  // A server that is down or slow is reported elsewhere. This call may be the first to find that a
  // connection is dead, and the next connection may reach another server.
  if (error.code == Code::kUnavailable || error.code == Code::kDeadlineExceeded) {
    due_ = {};
    return;
  }
  if (!std::exchange(failed_, true)) watcher_.failed(error);
}

}  // namespace weir::store::sql
