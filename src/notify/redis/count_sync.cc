#include "notify/redis/count_sync.h"

#include <algorithm>
#include <iterator>

namespace weir::notify::redis {
namespace {

constexpr std::size_t kMaxUsers = 2000;
constexpr std::size_t kMaxKeyed = 4000;

}  // namespace

void CountSync::Confirm(const std::string& user_id, Micros window_start) {
  ++pending_[{user_id, window_start}];
}

void CountSync::Flush() {
  if (calling_ || (pending_.empty() && keyed_.empty())) return;
  calling_ = true;
  // A user stands in a statement once.
  for (auto next = pending_.begin(); next != pending_.end() && sent_.size() < kMaxUsers;) {
    if (!sent_.empty() && sent_.back().user_id == next->first.first) {
      ++next;
      continue;
    }
    sent_.push_back({next->first.first, next->first.second, next->second});
    next = pending_.erase(next);
  }
  const auto count = static_cast<std::ptrdiff_t>(std::min(keyed_.size(), kMaxKeyed));
  sent_keyed_.assign(std::make_move_iterator(keyed_.begin()),
                     std::make_move_iterator(keyed_.begin() + count));
  keyed_.erase(keyed_.begin(), keyed_.begin() + count);
  add_(sent_, sent_keyed_);
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
  if (!ok) std::move(sent_keyed_.begin(), sent_keyed_.end(), std::back_inserter(keyed_));
  sent_.clear();
  sent_keyed_.clear();
}

void CountSync::Forget(const std::string& user_id, std::int64_t sends) {
  const auto found = unsynced_.find(user_id);
  if (found == unsynced_.end()) return;
  found->second -= sends;
  if (found->second <= 0) unsynced_.erase(found);
}

}  // namespace weir::notify::redis
