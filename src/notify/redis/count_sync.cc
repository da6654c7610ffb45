#include "notify/redis/count_sync.h"

#include <algorithm>
#include <iterator>

namespace weir::notify::redis {
namespace {

constexpr std::size_t kMaxUsersInCall = 2000;
constexpr std::size_t kMaxKeyed = 4000;

/// Moves the first elements of `from` to `to`, at most kMaxKeyed.
template <typename T>
void MoveSome(std::vector<T>& from, std::vector<T>& to) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(from.size(), kMaxKeyed));
  to.assign(std::make_move_iterator(from.begin()), std::make_move_iterator(from.begin() + count));
  from.erase(from.begin(), from.begin() + count);
}

}  // namespace

void CountSync::Confirm(const std::string& user_id, Micros window_start) {
  ++pending_[{user_id, window_start}];
}

void CountSync::Flush() {
  if (calling_ || (pending_.empty() && keyed_.empty() && accepted_.empty())) return;
  calling_ = true;
  // A user may occur only once in a statement.
  for (auto next = pending_.begin(); next != pending_.end() && sent_.size() < kMaxUsersInCall;) {
    if (!sent_.empty() && sent_.back().user_id == next->first.first) {
      ++next;
      continue;
    }
    sent_.push_back({next->first.first, next->first.second, next->second});
    next = pending_.erase(next);
  }
  MoveSome(keyed_, sent_keyed_);
  MoveSome(accepted_, sent_accepted_);
  add_(sent_, sent_keyed_, sent_accepted_);
}

void CountSync::Synced(bool ok) {
  calling_ = false;
  for (const CountDelta& delta : sent_) {
    if (ok) {
      Forget(delta.user_id, delta.sends);
    } else {
      pending_[{delta.user_id, delta.window_start}] += delta.sends;
    }
  }
  if (!ok) {
    std::move(sent_keyed_.begin(), sent_keyed_.end(), std::back_inserter(keyed_));
    std::move(sent_accepted_.begin(), sent_accepted_.end(), std::back_inserter(accepted_));
  }
  sent_.clear();
  sent_keyed_.clear();
  sent_accepted_.clear();
}

void CountSync::Forget(const std::string& user_id, std::int64_t sends) {
  const auto found = unsynced_.find(user_id);
  if (found == unsynced_.end()) return;
  found->second -= sends;
  if (found->second <= 0) unsynced_.erase(found);
}

}  // namespace weir::notify::redis
