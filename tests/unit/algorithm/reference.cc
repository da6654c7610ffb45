#include "unit/algorithm/reference.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "base/int128.h"

namespace weir::algorithm {

namespace {

Int128 FloorDiv(Int128 a, Int128 b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
Int128 CeilDiv(Int128 a, Int128 b) { return -FloorDiv(-a, b); }

std::chrono::nanoseconds Span(Int128 ns) {
  constexpr Int128 kMost = std::numeric_limits<std::int64_t>::max();
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::clamp<Int128>(ns, 0, kMost)));
}

/// A bucket that holds tokens, in units of 1/period token, of which `refill` are added per
/// nanosecond. Between charges its level is a straight line, also for a clock that goes back on it.
class TokenBucketReference final : public Reference {
 public:
  using Reference::Reference;

 private:
  Int128 Full() const { return Int128{quota().limit()} * quota().period().count(); }

  Int128 LevelAt(Int128 now) const {
    if (!charged_) return Full();
    return std::min(Full(), level_ + (now - at_) * quota().refill());
  }

  std::int64_t Available(Nanos now) const override {
    const Int128 level = std::max<Int128>(LevelAt(now), 0);
    return static_cast<std::int64_t>(level / quota().period().count());
  }

  std::int64_t Charge(Nanos now, std::int64_t cost) override {
    level_ = LevelAt(now) - Int128{cost} * quota().period().count();
    at_ = now;
    charged_ = true;
    return 0;
  }

  void Owe(Nanos now, std::int64_t cost) override {
    // Any debt is refilled within kMaxWindow.
    const Int128 lowest = Full() - Int128{kMaxWindow.count()} * quota().refill();
    if (LevelAt(now) <= lowest) return;
    Charge(now, cost);
    level_ = std::max(level_, lowest);
  }

  void GiveBack(Nanos now, std::int64_t cost) override {
    if (LevelAt(now) == Full()) return;
    const Int128 back = Int128{std::min(cost, quota().limit())} * quota().period().count();
    level_ = std::min(Full(), LevelAt(now) + back);
    at_ = now;
  }

  std::chrono::nanoseconds UntilAvailable(Nanos now, std::int64_t permits) const override {
    const Int128 missing = Int128{permits} * quota().period().count() - LevelAt(now);
    return Span(CeilDiv(missing, quota().refill()));
  }

  Int128 level_ = 0;
  Int128 at_ = 0;
  bool charged_ = false;
};

/// A count for every window so far; the latest one charged stays in force for an earlier
/// clock.
class FixedWindowReference final : public Reference {
 public:
  using Reference::Reference;

 private:
  Int128 InForce(Nanos now) const {
    const Int128 index = FloorDiv(now, quota().window().count());
    return granted_.empty() ? index : std::max(index, granted_.rbegin()->first);
  }

  std::int64_t Available(Nanos now) const override {
    const auto it = granted_.find(InForce(now));
    return quota().limit() - (it == granted_.end() ? 0 : it->second);
  }

  std::int64_t Charge(Nanos now, std::int64_t cost) override {
    granted_[InForce(now)] += cost;
    return 0;
  }

  void Owe(Nanos now, std::int64_t cost) override {
    Charge(now, std::min(cost, kMaxLimit - (quota().limit() - Available(now))));
  }

  void GiveBack(Nanos now, std::int64_t cost) override {
    const auto it = granted_.find(InForce(now));
    if (it != granted_.end()) it->second = std::max<std::int64_t>(it->second - cost, 0);
  }

  std::chrono::nanoseconds UntilAvailable(Nanos now, std::int64_t permits) const override {
    if (Available(now) >= permits) return std::chrono::nanoseconds(0);
    return Span((InForce(now) + 1) * quota().window().count() - now);
  }

  std::map<Int128, std::int64_t> granted_;
};

/// Every grant so far. For the sliding log a grant counts while time > now - window.
class SlidingLogReference final : public Reference {
 public:
  using Reference::Reference;

 private:
  struct Grant {
    Int128 time;
    std::int64_t cost;
  };

  Int128 KeyTime(Nanos now) const { return latest_ ? std::max<Int128>(now, *latest_) : now; }

  std::int64_t Available(Nanos now) const override {
    std::int64_t used = 0;
    const Int128 gone = KeyTime(now) - quota().window().count();
    for (auto it = grants_.rbegin(); it != grants_.rend() && it->time > gone; ++it) {
      used += it->cost;
    }
    return quota().limit() - used;
  }

  std::int64_t Charge(Nanos now, std::int64_t cost) override {
    latest_ = KeyTime(now);
    grants_.push_back({*latest_, cost});
    return 0;
  }

  void Owe(Nanos now, std::int64_t cost) override {
    const std::int64_t most = kMaxLimit - (quota().limit() - Available(now));
    if (most > 0) Charge(now, std::min(cost, most));
  }

  void GiveBack(Nanos now, std::int64_t cost) override {
    const Int128 gone = KeyTime(now) - quota().window().count();
    while (cost > 0 && !grants_.empty() && grants_.back().time > gone) {
      const std::int64_t part = std::min(cost, grants_.back().cost);
      cost -= part;
      grants_.back().cost -= part;
      if (grants_.back().cost == 0) grants_.pop_back();
    }
  }

  std::chrono::nanoseconds UntilAvailable(Nanos now, std::int64_t permits) const override {
    std::int64_t available = Available(now);
    if (available >= permits) return std::chrono::nanoseconds(0);
    const Int128 gone = KeyTime(now) - quota().window().count();
    auto oldest = grants_.end();
    while (oldest != grants_.begin() && (oldest - 1)->time > gone) --oldest;
    for (; available < permits; ++oldest) {
      available += oldest->cost;
      if (available >= permits) return Span(oldest->time + quota().window().count() - now);
    }
    return std::chrono::nanoseconds(0);
  }

  std::vector<Grant> grants_;
  std::optional<Int128> latest_;
};

/// A count for every bucket so far. The time at which permits return is found by bisection.
class SlidingCounterReference final : public Reference {
 public:
  using Reference::Reference;

 private:
  Int128 Width() const { return CeilDiv(quota().window().count(), quota().buckets()); }

  std::int64_t AvailableAt(Int128 now) const {
    Int128 current = FloorDiv(now, Width());
    Int128 elapsed = now - current * Width();
    if (latest_ && *latest_ > current) {
      current = *latest_;
      elapsed = 0;
    }
    const Int128 oldest = current - quota().buckets();
    Int128 used = 0;
    for (auto it = granted_.lower_bound(oldest); it != granted_.end(); ++it) {
      used += it->first == oldest ? CeilDiv(it->second * (Width() - elapsed), Width()) : it->second;
    }
    return static_cast<std::int64_t>(quota().limit() - used);
  }

  std::int64_t Available(Nanos now) const override { return AvailableAt(now); }

  std::int64_t Charge(Nanos now, std::int64_t cost) override {
    const Int128 current = FloorDiv(now, Width());
    latest_ = latest_ ? std::max(*latest_, current) : current;
    granted_[*latest_] += cost;
    return 0;
  }

  void Owe(Nanos now, std::int64_t cost) override {
    // The bucket that is sliding out counts in full here.
    Int128 counted = 0;
    const Int128 current = FloorDiv(now, Width());
    const Int128 oldest = (latest_ ? std::max(*latest_, current) : current) - quota().buckets();
    for (auto it = granted_.lower_bound(oldest); it != granted_.end(); ++it) counted += it->second;
    const Int128 most = std::max<Int128>(kMaxLimit - counted, 0);
    if (most > 0) Charge(now, static_cast<std::int64_t>(std::min<Int128>(cost, most)));
  }

  void GiveBack(Nanos now, std::int64_t cost) override {
    const Int128 current = FloorDiv(now, Width());
    const Int128 oldest = (latest_ ? std::max(*latest_, current) : current) - quota().buckets();
    for (auto it = granted_.rbegin(); it != granted_.rend() && it->first >= oldest; ++it) {
      const Int128 part = std::min<Int128>(cost, it->second);
      it->second -= part;
      cost -= static_cast<std::int64_t>(part);
    }
  }

  std::chrono::nanoseconds UntilAvailable(Nanos now, std::int64_t permits) const override {
    if (AvailableAt(now) >= permits) return std::chrono::nanoseconds(0);
    Int128 too_early = now;
    Int128 enough = (*latest_ + quota().buckets() + 1) * Width();
    while (enough - too_early > 1) {
      const Int128 middle = (too_early + enough) / 2;
      (AvailableAt(middle) >= permits ? enough : too_early) = middle;
    }
    return Span(enough - now);
  }

  std::map<Int128, Int128> granted_;
  std::optional<Int128> latest_;
};

/// Every lease so far, by its expiry.
class ConcurrencyReference final : public Reference {
 public:
  using Reference::Reference;

  bool Release(Nanos now, std::int64_t lease) override {
    const auto it = leases_.find(lease);
    if (it == leases_.end() || it->first <= KeyTime(now) || it->second == 0) return false;
    it->second = 0;
    return true;
  }

 private:
  Int128 KeyTime(Int128 now) const { return latest_ ? std::max(now, *latest_) : now; }

  std::int64_t AvailableAt(Int128 now) const {
    std::int64_t used = 0;
    for (auto it = leases_.upper_bound(KeyTime(now)); it != leases_.end(); ++it) used += it->second;
    return quota().limit() - used;
  }

  std::int64_t Available(Nanos now) const override { return AvailableAt(now); }

  std::int64_t Charge(Nanos now, std::int64_t cost) override {
    latest_ = KeyTime(now);
    Int128 expiry = Int128{now} + quota().window().count();
    if (!leases_.empty()) expiry = std::max(expiry, leases_.rbegin()->first + 1);
    if (expiry == 0) expiry = 1;
    leases_[expiry] = cost;
    return static_cast<std::int64_t>(expiry);
  }

  void Owe(Nanos /*now*/, std::int64_t /*cost*/) override {}

  void GiveBack(Nanos /*now*/, std::int64_t /*cost*/) override {}

  std::chrono::nanoseconds UntilAvailable(Nanos now, std::int64_t permits) const override {
    std::int64_t available = Available(now);
    if (available >= permits) return std::chrono::nanoseconds(0);
    for (auto it = leases_.upper_bound(KeyTime(now)); it != leases_.end(); ++it) {
      available += it->second;
      if (available >= permits) return Span(it->first - now);
    }
    return std::chrono::nanoseconds(0);
  }

  std::map<Int128, std::int64_t> leases_;
  std::optional<Int128> latest_;
};

/// Every window so far, each started by a charge when none was in force.
class AnchoredWindowReference final : public Reference {
 public:
  using Reference::Reference;

 private:
  struct Window {
    Int128 end;
    std::int64_t granted;
  };

  const Window* InForce(Nanos now) const {
    if (windows_.empty() || windows_.back().granted == 0 || windows_.back().end <= now) {
      return nullptr;
    }
    return &windows_.back();
  }

  std::int64_t Available(Nanos now) const override {
    const Window* window = InForce(now);
    return quota().limit() - (window == nullptr ? 0 : window->granted);
  }

  std::int64_t Charge(Nanos now, std::int64_t cost) override {
    if (InForce(now) == nullptr) windows_.push_back({Int128{now} + quota().window().count(), 0});
    windows_.back().granted += cost;
    return 0;
  }

  void Owe(Nanos now, std::int64_t cost) override {
    Charge(now, std::min(cost, kMaxLimit - (quota().limit() - Available(now))));
  }

  void GiveBack(Nanos now, std::int64_t cost) override {
    if (InForce(now) == nullptr) return;
    windows_.back().granted = std::max<std::int64_t>(windows_.back().granted - cost, 0);
  }

  std::chrono::nanoseconds UntilAvailable(Nanos now, std::int64_t permits) const override {
    if (Available(now) >= permits) return std::chrono::nanoseconds(0);
    return Span(InForce(now)->end - now);
  }

  std::vector<Window> windows_;
};

}  // namespace

std::unique_ptr<Reference> Reference::For(const Quota& quota) {
  switch (quota.algorithm()) {
    case Algorithm::kTokenBucket:
      return std::make_unique<TokenBucketReference>(quota);
    case Algorithm::kFixedWindow:
      return std::make_unique<FixedWindowReference>(quota);
    case Algorithm::kSlidingLog:
      return std::make_unique<SlidingLogReference>(quota);
    case Algorithm::kSlidingCounter:
      return std::make_unique<SlidingCounterReference>(quota);
    case Algorithm::kConcurrency:
      return std::make_unique<ConcurrencyReference>(quota);
    case Algorithm::kAnchoredWindow:
      return std::make_unique<AnchoredWindowReference>(quota);
  }
  return nullptr;
}

Decision Reference::Describe(Nanos now) const {
  Decision decision;
  decision.limit = quota_.limit();
  decision.remaining = std::max<std::int64_t>(Available(now), 0);
  decision.reset_after = UntilAvailable(now, quota_.limit());
  return decision;
}

Decision Reference::Acquire(Nanos now, std::int64_t cost) {
  if (cost > 0 && cost <= Available(now)) {
    const std::int64_t lease = Charge(now, cost);
    Decision decision = Describe(now);
    decision.lease = lease;
    return decision;
  }
  Decision decision = Describe(now);
  if (cost <= 0) return decision;
  decision.verdict = cost > quota_.limit() ? Verdict::kNever : Verdict::kLimited;
  if (decision.verdict == Verdict::kLimited) decision.retry_after = UntilAvailable(now, cost);
  return decision;
}

Decision Reference::Overdraw(Nanos now, std::int64_t cost) {
  if (cost > 0) Owe(now, cost);
  Decision decision = Describe(now);
  decision.retry_after = UntilAvailable(now, 0);
  if (decision.retry_after.count() > 0) decision.verdict = Verdict::kLimited;
  return decision;
}

Decision Reference::Refund(Nanos now, std::int64_t cost) {
  if (cost > 0) GiveBack(now, cost);
  return Describe(now);
}

}  // namespace weir::algorithm
