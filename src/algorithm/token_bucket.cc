#include "algorithm/token_bucket.h"

#include <algorithm>

#include "algorithm/low_marks.h"

namespace weir::algorithm {

Decision AcquireAny(const Quota& quota, TokenBucketState& state, Nanos now,
                    std::int64_t cost) noexcept {
  using namespace token_bucket;
  now = ClampTime(now);
  Span debt = Debt(quota, state, now);
  Decision decision;
  if (cost > quota.limit()) {
    decision.verdict = Verdict::kNever;
  } else if (cost > 0) {
    const std::uint64_t n = QuotaAccess::refill(quota);
    const Span charged = Add(debt, TimeOf(quota, cost), n);
    const Span window = Window(quota);
    if (!(window < charged)) {
      state = FullAfter(charged, now);
      debt = charged;
    } else {
      decision.verdict = Verdict::kLimited;
      decision.retry_after = Ceil(Subtract(charged, window, n));
    }
  }
  Describe(quota, debt, decision);
  return decision;
}

token_bucket::Span BoundedTimeOf(const Quota& quota, std::int64_t cost) noexcept {
  const std::uint64_t n = QuotaAccess::refill(quota);
  const UInt128 wide = UInt128{static_cast<std::uint64_t>(cost)} * QuotaAccess::period(quota);
  constexpr auto kMost = static_cast<std::uint64_t>(kMaxWindow.count());
  if (wide / n >= kMost) return {kMost, 0};
  return {static_cast<std::uint64_t>(wide / n), static_cast<std::uint64_t>(wide % n)};
}

Decision Overdraw(const Quota& quota, TokenBucketState& state, Nanos now,
                  std::int64_t cost) noexcept {
  using namespace token_bucket;
  now = ClampTime(now);
  Span debt = Debt(quota, state, now);
  constexpr Span kMost{static_cast<std::uint64_t>(kMaxWindow.count()), 0};
  const std::uint64_t n = QuotaAccess::refill(quota);
  if (cost > 0 && debt < kMost) {
    debt = Add(debt, BoundedTimeOf(quota, cost), n);
    if (kMost < debt) debt = kMost;
    state = FullAfter(debt, now);
  }
  Decision decision;
  Describe(quota, debt, decision);
  const Span window = Window(quota);
  if (window < debt) {
    decision.verdict = Verdict::kLimited;
    decision.retry_after = Ceil(Subtract(debt, window, n));
  }
  return decision;
}

Decision Refund(const Quota& quota, TokenBucketState& state, Nanos now,
                std::int64_t cost) noexcept {
  using namespace token_bucket;
  now = ClampTime(now);
  Span debt = Debt(quota, state, now);
  if (cost > 0 && Span{} < debt) {
    const Span back = TimeOf(quota, std::min(cost, quota.limit()));
    debt = back < debt ? Subtract(debt, back, QuotaAccess::refill(quota)) : Span{};
    state = FullAfter(debt, now);
  }
  Decision decision;
  Describe(quota, debt, decision);
  return decision;
}

namespace token_bucket {

std::uint32_t CapacityForAcquire(const Quota&, const State& state) noexcept {
  return std::max(state.size, kTokenBucketBytes);
}

Decision Peek(const Quota& quota, const State& state, Nanos now, std::int64_t cost) noexcept {
  return algorithm::Peek(quota, ReadTokenBucket(state), now, cost);
}

Decision Acquire(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  TokenBucketState bucket = ReadTokenBucket(state);
  const Span before = Debt(quota, bucket, ClampTime(now));
  const Decision decision = algorithm::Acquire(quota, bucket, now, cost);
  if (cost <= 0 || !decision.allowed()) return decision;
  WriteTokenBucket(state, bucket);
  low_marks::Lower(state, ClampTime(now), before);
  return decision;
}

Decision Reserve(const Quota& quota, State& state, Nanos now, std::int64_t cost,
                 Nanos until) noexcept {
  Decision decision = token_bucket::Acquire(quota, state, now, cost);
  if (cost > 0 && decision.allowed()) {
    decision.lease = low_marks::Add(state, ClampTime(now), TimeOf(quota, cost), until);
  }
  return decision;
}

// Once the debt is at its maximum, charges beyond it were not counted. Nothing is returned then: it
// might never have been counted.
Decision Overdraw(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  TokenBucketState bucket = ReadTokenBucket(state);
  const Span before = Debt(quota, bucket, ClampTime(now));
  const Decision decision = algorithm::Overdraw(quota, bucket, now, cost);
  if (cost <= 0) return decision;
  WriteTokenBucket(state, bucket);
  const Span after = Debt(quota, bucket, ClampTime(now));
  const bool lost = after.ns >= static_cast<std::uint64_t>(kMaxWindow.count());
  low_marks::Lower(state, ClampTime(now), lost ? Span{} : before);
  return decision;
}

Decision Refund(const Quota& quota, State& state, Nanos now, std::int64_t cost) noexcept {
  const TokenBucketState before = ReadTokenBucket(state);
  TokenBucketState bucket = before;
  const Decision decision = algorithm::Refund(quota, bucket, now, cost);
  if (bucket == before) return decision;
  WriteTokenBucket(state, bucket);
  low_marks::Lower(state, ClampTime(now), Debt(quota, bucket, ClampTime(now)));
  return decision;
}

void GiveBack(const Quota& quota, State& state, Nanos now, Span freed) noexcept {
  const Span debt = Debt(quota, ReadTokenBucket(state), now);
  const Span rest = freed < debt ? Subtract(debt, freed, QuotaAccess::refill(quota)) : Span{};
  WriteTokenBucket(state, FullAfter(rest, now));
  low_marks::Lower(state, now, rest);
}

Nanos FreshAt(const State& state) noexcept { return algorithm::FreshAt(ReadTokenBucket(state)); }

bool Valid(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.size() < kTokenBucketBytes) return false;
  const auto full_at = Load<Nanos>(bytes.data());
  const auto frac = Load<std::uint32_t>(bytes.data() + 8);
  return full_at >= kEarliest && full_at <= kLatest + kMaxWindow.count() &&
         frac < std::numeric_limits<std::uint32_t>::max() &&
         low_marks::Valid(bytes.subspan(kTokenBucketBytes));
}

}  // namespace token_bucket

}  // namespace weir::algorithm
