#include "algorithm/lease.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "algorithm/anchored_window.h"
#include "algorithm/charge_log.h"
#include "algorithm/fixed_window.h"
#include "algorithm/quota_access.h"
#include "algorithm/sliding_counter.h"
#include "algorithm/time_range.h"
#include "algorithm/token_bucket.h"
#include "base/int128.h"

namespace weir::algorithm {
namespace {

// A lease is a small part of the window, so the quota is narrowed by a small part.
constexpr std::int64_t kLeasesPerWindow = 20;

Nanos BucketWidth(const Quota& quota) noexcept {
  return (quota.window().count() - 1) / quota.buckets() + 1;
}

Error TooShort() {
  return {Code::kInvalidArgument,
          "cannot be leased: the window is too short (a lease is a twentieth of it, for a sliding "
          "counter at most a bucket, and at least " +
              std::to_string(kShortestLease.count()) + " ms); use mode: exact"};
}

// ceil(rate * term).
std::int64_t PermitsDuring(const Quota& quota, Nanos term) noexcept {
  const Int128 period = quota.period().count();
  return static_cast<std::int64_t>((Int128{quota.refill()} * term + period - 1) / period);
}

Result<Quota> NarrowBucket(const Quota& quota, Nanos term) {
  const std::int64_t headroom = PermitsDuring(quota, term);
  if (headroom > quota.limit() / 4) {
    return Error{Code::kInvalidArgument,
                 "cannot be leased: " + std::to_string(headroom) + " of its " +
                     std::to_string(quota.limit()) +
                     " permits would have to be held back (at most a quarter is allowed); raise "
                     "the capacity or use mode: exact"};
  }
  return Quota::TokenBucket(quota.limit() - headroom, quota.refill(), quota.period());
}

Result<Quota> Narrow(const Quota& quota, Nanos term) {
  switch (quota.algorithm()) {
    case Algorithm::kTokenBucket:
      return NarrowBucket(quota, term);
    case Algorithm::kSlidingLog:
      return Quota::SlidingLog(quota.limit(), quota.window() + std::chrono::nanoseconds(term));
    case Algorithm::kConcurrency:
      return Quota::Concurrency(quota.limit(), quota.window() + std::chrono::nanoseconds(term));
    default:
      return quota;
  }
}

// What a region's store holds is lent while it lasts for longer than a node's lease: during three
// quarters of its own.
constexpr Nanos kNodesOfRegion = 4;

constexpr std::int64_t kRateParts = 8;     // of these, one is not divided into shares
constexpr std::int64_t kBurstParts = 4;    // of these, one is
constexpr std::int64_t kLeastShared = 16;  // permits: with fewer, a share would get none

// With fewer permits in flight, what nodes keep in stock would be too large a part.
constexpr std::int64_t kLeastConcurrency = 64;

// If the clock is far behind a state, the reset time saturates.
Nanos Later(Nanos now, Nanos ahead) noexcept {
  Nanos then = 0;
  if (ahead <= 0) return now;
  return __builtin_add_overflow(now, ahead, &then) ? std::numeric_limits<Nanos>::max() : then;
}

// Had the permits never been charged, the debt would be lower by their time, minus the time that
// the bucket would have been full: at most the time since.
void ReturnToBucket(const Quota& quota, State& state, Nanos now, Nanos at,
                    std::int64_t count) noexcept {
  using namespace token_bucket;
  if (state.empty() || now < at) return;
  const Span since{static_cast<std::uint64_t>(now) - static_cast<std::uint64_t>(at), 0};
  const Span whole = TimeOf(quota, std::min(count, quota.limit()));
  const Span debt = Debt(quota, ReadTokenBucket(state), now);
  if (!(since < whole) || !(Span{} < debt)) return;
  GiveBack(quota, state, now, Subtract(whole, since, QuotaAccess::refill(quota)));
}

}  // namespace

Result<LeaseTerms> TermsFor(const Quota& quota, std::chrono::nanoseconds longest) {
  if (quota.algorithm() == Algorithm::kAnchoredWindow) {
    return Error{Code::kInvalidArgument,
                 "cannot be leased: an anchored_window starts with a request; use mode: exact"};
  }
  if (quota.algorithm() == Algorithm::kConcurrency && quota.limit() < kLeastConcurrency) {
    return Error{Code::kInvalidArgument, "cannot be leased: a concurrency limit must be at least " +
                                             std::to_string(kLeastConcurrency) +
                                             "; use mode: exact"};
  }
  Nanos term = std::min(longest.count(), quota.window().count() / kLeasesPerWindow);
  if (quota.algorithm() == Algorithm::kSlidingCounter) term = std::min(term, BucketWidth(quota));
  if (term < std::chrono::nanoseconds(kShortestLease).count()) return TooShort();
  Result<Quota> narrowed = Narrow(quota, term);
  if (!narrowed.ok()) return narrowed.error();
  return LeaseTerms{*std::move(narrowed), term};
}

Result<LeaseTerms> RegionTermsFor(const Quota& quota, std::chrono::nanoseconds longest) {
  Result<LeaseTerms> terms = TermsFor(quota, longest);
  if (!terms.ok() || quota.algorithm() == Algorithm::kConcurrency) return TermsFor(quota);
  const Nanos lent = std::min<Nanos>(terms->term / kNodesOfRegion,
                                     std::chrono::nanoseconds(kLongestLease).count());
  if (lent < std::chrono::nanoseconds(kShortestLease).count()) return TermsFor(quota);
  terms->region = std::exchange(terms->term, lent);
  return terms;
}

LeaseTerms AtRegion(const LeaseTerms& terms) {
  if (terms.region == 0) return terms;
  return {.quota = terms.quota, .term = terms.region};
}

Result<LeaseTerms> RateTermsFor(const Quota& quota, std::chrono::nanoseconds share_term) {
  const auto refused = [](std::string why) {
    return Error{Code::kInvalidArgument, "rates cannot be leased: " + std::move(why)};
  };
  if (quota.algorithm() != Algorithm::kTokenBucket) {
    return refused("only the rate of a token_bucket can; use mode: leased or exact");
  }
  if (quota.limit() < kLeastShared) {
    return refused("the capacity must be at least " + std::to_string(kLeastShared) +
                   "; use mode: exact");
  }
  if (std::max(quota.window(), quota.period()) > kSlowestShared) {
    return refused("the bucket takes more than an hour to fill; use mode: leased");
  }
  const std::int64_t shared = quota.limit() / kBurstParts;
  const auto rest =
      Quota::TokenBucket(quota.limit() - shared, quota.refill(), kRateParts * quota.period());
  if (!rest.ok()) return refused(rest.error().message);
  Result<LeaseTerms> terms = TermsFor(*rest);
  if (!terms.ok()) return terms;
  terms->rate = {.burst = shared,
                 .refill = (kRateParts - 1) * quota.refill(),
                 .period = kRateParts * quota.period().count(),
                 .term = share_term.count()};
  return terms;
}

LeaseGrant Lease(const Quota& quota, State& state, Nanos now, std::int64_t want) noexcept {
  LeaseGrant grant;
  grant.decision = Peek(quota, state, now, 0);
  for (std::int64_t cost = std::min(want, quota.limit()); cost > 0; cost /= 2) {
    grant.decision = Acquire(quota, state, now, cost);
    if (!grant.decision.allowed()) continue;
    grant.granted = cost;
    break;
  }
  grant.at = ChargedAt(quota, now, grant.decision);
  return grant;
}

// The steps of the log and the counter never go back in time for a key: what they charge then is
// later than now, and reset_after shows when. An anchored window is named by its end.
Nanos ChargedAt(const Quota& quota, Nanos now, const Decision& decision) noexcept {
  now = ClampTime(now);
  if (!decision.allowed()) return now;
  if (quota.algorithm() == Algorithm::kAnchoredWindow) return now + decision.reset_after.count();
  if (quota.algorithm() == Algorithm::kSlidingLog) {
    return Later(now, (decision.reset_after - quota.window()).count());
  }
  if (quota.algorithm() == Algorithm::kSlidingCounter) {
    const Nanos bucket = (quota.buckets() + 1) * BucketWidth(quota);
    return Later(now, decision.reset_after.count() - bucket);
  }
  return now;
}

Nanos WindowEndsIn(const Quota& quota, const Decision& decision) noexcept {
  if (quota.algorithm() == Algorithm::kFixedWindow) return decision.reset_after.count() - 1;
  if (quota.algorithm() == Algorithm::kSlidingCounter) {
    const Nanos later = quota.buckets() * BucketWidth(quota);
    return decision.reset_after.count() - later - 1;
  }
  return std::numeric_limits<Nanos>::max();
}

Nanos SpendFor(const LeaseTerms& terms, const Decision& decision) noexcept {
  return std::min(terms.term, WindowEndsIn(terms.quota, decision));
}

Decision Return(const Quota& quota, State& state, Nanos now, Nanos at,
                std::int64_t count) noexcept {
  now = ClampTime(now);
  if (count > 0 && !state.empty()) {
    switch (quota.algorithm()) {
      case Algorithm::kTokenBucket:
        ReturnToBucket(quota, state, now, at, count);
        break;
      case Algorithm::kFixedWindow:
        FixedWindow::Return(quota, state, now, at, count);
        break;
      case Algorithm::kSlidingLog:
        TakeAt(state, at, count);
        break;
      case Algorithm::kSlidingCounter:
        sliding_counter::Return(quota, state, at, count);
        break;
      case Algorithm::kAnchoredWindow:
        AnchoredWindow::Return(quota, state, now, at, count);
        break;
      case Algorithm::kConcurrency:
        break;
    }
  }
  return Peek(quota, state, now, 0);
}

}  // namespace weir::algorithm
