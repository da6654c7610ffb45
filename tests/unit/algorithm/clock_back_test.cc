// A clock that goes back never grants more: grants are checked against true time, which the
// key does not see. The key's clock shows true time less an offset that grows whenever the clock
// goes back.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/int128.h"
#include "unit/algorithm/generators.h"

namespace weir::algorithm {
namespace {

struct Grant {
  Int128 time;  // true
  std::int64_t cost;
};

using Grants = std::vector<Grant>;

// Plays the trace; each backward move changes only the key's clock.
Grants Play(const Quota& quota, const Trace& trace) {
  Key key(quota);
  Player player(quota, trace.start);
  Nanos shown = trace.start;
  Int128 offset = 0;
  Grants grants;
  for (const Step& step : trace.steps) {
    const Nanos now = player.Move(step);
    if (now < shown) offset += shown - now;
    shown = now;
    if (step.action != Action::kAcquire) continue;
    const std::int64_t cost = player.Cost(step);
    const Decision decision = key.Acquire(now, cost);
    player.Heard(decision);
    if (decision.allowed() && cost > 0) grants.push_back({now + offset, cost});
  }
  return grants;
}

// The maximum granted within any true span of the given length, both ends included.
Int128 MostWithin(const Grants& grants, Int128 span) {
  Int128 most = 0;
  Int128 sum = 0;
  std::size_t oldest = 0;
  for (const Grant& grant : grants) {
    sum += grant.cost;
    while (grant.time - grants[oldest].time > span) sum -= grants[oldest++].cost;
    most = std::max(most, sum);
  }
  return most;
}

void ForTraces(const rc::Gen<Quota>& quotas, void (*holds)(const Quota&, const Grants&)) {
  EXPECT_TRUE(rc::check([&quotas, holds] {
    const Quota quota = *quotas;
    holds(quota, Play(quota, *AnyTrace()));
    const auto seed = *rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>());
    if (seed % 4 == 0) holds(quota, Play(quota, LongTrace(seed)));
  }));
}

TEST(ClockThatGoesBack, TokenBucketGrantsAtMostItsCapacityAndWhatFlowsIn) {
  ForTraces(AnyTokenBucket(), [](const Quota& quota, const Grants& grants) {
    const Int128 period = quota.period().count();
    // In 1/period permits: granted since any grant, that one included, less the refill since
    // then.
    Int128 surplus = 0;
    for (std::size_t i = 0; i < grants.size(); ++i) {
      if (i > 0) {
        const Int128 passed = grants[i].time - grants[i - 1].time;
        surplus = std::max<Int128>(surplus - passed * quota.refill(), 0);
      }
      surplus += grants[i].cost * period;
      RC_ASSERT(surplus <= quota.limit() * period);
    }
  });
}

TEST(ClockThatGoesBack, FixedWindowGrantsAtMostTwoWindowsWithinOne) {
  ForTraces(AnyFixedWindow(), [](const Quota& quota, const Grants& grants) {
    RC_ASSERT(MostWithin(grants, quota.window().count()) <= 2 * Int128{quota.limit()});
  });
}

TEST(ClockThatGoesBack, SlidingLogGrantsAtMostTheLimitInAnyWindow) {
  ForTraces(AnySlidingLog(), [](const Quota& quota, const Grants& grants) {
    RC_ASSERT(MostWithin(grants, quota.window().count() - 1) <= quota.limit());
  });
}

TEST(ClockThatGoesBack, SlidingCounterGrantsAtMostTheLimitInAllButOneBucketOfAWindow) {
  ForTraces(AnySlidingCounter(), [](const Quota& quota, const Grants& grants) {
    const Int128 width = (quota.window().count() - 1) / quota.buckets() + 1;
    // A span this short touches at most as many buckets as count in full.
    RC_ASSERT(MostWithin(grants, (quota.buckets() - 1) * width) <= quota.limit());
  });
}

TEST(ClockThatGoesBack, AnchoredWindowGrantsAtMostTheLimitFromEachBeginning) {
  ForTraces(AnyAnchoredWindow(), [](const Quota& quota, const Grants& grants) {
    // No span of a window touches more than two of them.
    RC_ASSERT(MostWithin(grants, quota.window().count() - 1) <= 2 * Int128{quota.limit()});
  });
}

TEST(ClockThatGoesBack, ConcurrencyHasAtMostTheLimitInFlight) {
  ForTraces(AnyConcurrency(), [](const Quota& quota, const Grants& grants) {
    RC_ASSERT(MostWithin(grants, quota.window().count() - 1) <= quota.limit());
  });
}

}  // namespace
}  // namespace weir::algorithm
