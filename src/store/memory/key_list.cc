#include "store/memory/key_list.h"

#include <algorithm>
#include <thread>

#include "base/blocking.h"

namespace weir::store::memory {
namespace {

/// The maximum age of keys found for an earlier page, while a person pages on.
constexpr std::chrono::seconds kStale{10};

/// After each slice of work, pauses for four times as long.
class Slices {
 public:
  void Count() {
    constexpr int kKeys = 256;  // the clock is read once per this many keys
    if (++keys_ % kKeys != 0) return;
    const auto worked = Clock::now() - since_;
    if (worked < std::chrono::milliseconds(1)) return;
    std::this_thread::sleep_for(std::min<Clock::duration>(4 * worked, kLongest));
    since_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kLongest{20};  // it may have had to wait for a CPU
  int keys_ = 0;
  Clock::time_point since_ = Clock::now();
};

bool Before(const HeldKey& a, const HeldKey& b) { return a.key < b.key; }
bool After(const std::string& key, const HeldKey& held) { return key < held.key; }

}  // namespace

/// Keeps the first `most` + 1 of them, as a heap with the largest on top.
void KeyList::Find(const KeyQuery& query) {
  MayBlock("looking at every key");
  const std::size_t most = std::max(query.limit, ahead_) + 1;
  keys_.clear();
  Slices slices;
  engine_.Visit([&](const KeyView& view) {
    if (stopped_.load(std::memory_order_relaxed)) return;
    slices.Count();
    if (view.key <= query.cursor || !view.key.starts_with(query.prefix)) return;
    if (keys_.size() == most && view.key >= keys_.front().key) return;
    keys_.push_back({std::string(view.key), view.algorithm});
    std::push_heap(keys_.begin(), keys_.end(), Before);
    if (keys_.size() <= most) return;
    std::pop_heap(keys_.begin(), keys_.end(), Before);
    keys_.pop_back();
  });
  std::sort_heap(keys_.begin(), keys_.end(), Before);
  prefix_ = query.prefix;
  after_ = query.cursor;
  complete_ = keys_.size() < most;
  found_at_ = Clock::now();
}

/// Whether keys found for an earlier page suffice for this one. A first page is always searched.
bool KeyList::Has(const KeyQuery& query) const {
  if (query.cursor.empty() || query.cursor < after_ || query.prefix != prefix_) return false;
  if (Clock::now() - found_at_ > kStale) return false;
  const auto next = std::upper_bound(keys_.begin(), keys_.end(), query.cursor, After);
  return complete_ || static_cast<std::size_t>(keys_.end() - next) > query.limit;
}

KeyPage KeyList::Read(const KeyQuery& query) {
  if (!Has(query)) Find(query);
  KeyPage page;
  if (stopped_) return page;  // keys may be missing in what was found
  const auto begin = std::upper_bound(keys_.begin(), keys_.end(), query.cursor, After);
  auto end = keys_.end();
  if (static_cast<std::size_t>(end - begin) > query.limit) {
    // The next page begins with a whole key, which may exist under several algorithms.
    const auto beyond = begin + static_cast<std::ptrdiff_t>(query.limit);
    const auto first = std::lower_bound(begin, end, *beyond, Before);
    end = first != begin ? first : std::upper_bound(begin, end, *beyond, Before);
    page.next = std::prev(end)->key;
  }
  page.keys.assign(begin, end);
  return page;
}

}  // namespace weir::store::memory
