// CL.THROTTLE calculated by hand from its definition: a bucket of max_burst + 1 permits, one permit
// refilled every period / count seconds. T = emission interval, L = max_burst + 1. Then THROTTLE,
// with a bucket of L = max_burst permits.

#include "protocol/resp/throttle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "protocol/resp/session.h"
#include "unit/protocol/resp/bucket_limiter.h"

namespace weir::resp {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

class CellThrottle : public ::testing::Test {
 protected:
  explicit CellThrottle(std::string command = "CL.THROTTLE") : command_(std::move(command)) {}

  // Sends "CL.THROTTLE <arguments>" and returns the reply with its lines joined by spaces, e.g.
  // "0 16 15 -1 2", or the error.
  std::string Throttle(const std::string& arguments) {
    Buffer out;
    const std::string line = command_ + " " + arguments + "\r\n";
    EXPECT_EQ(session_.Feed(line, out), line.size());
    std::string reply(out.view());
    if (reply.rfind("*5\r\n", 0) != 0) return reply.substr(0, reply.find('\r'));
    std::string numbers;
    for (const char c : reply.substr(4)) {
      if (c == ':') numbers += numbers.empty() ? "" : " ";
      if (c == '-' || (c >= '0' && c <= '9')) numbers += c;
    }
    return numbers;
  }

  std::string command_;
  BucketLimiter limiter_;
  Service service_;
  Worker worker_{service_, limiter_};
  Session session_{worker_, "127.0.0.1:1", "127.0.0.1:2", [] {}};
};

class CrabThrottle : public CellThrottle {
 protected:
  CrabThrottle() : CellThrottle("THROTTLE") {}
};

TEST_F(CellThrottle, BurstThenLimitedThenRefilled) {
  // 15 30 60: L = 16, T = 2 s. The n-th call leaves 16 - n and takes 2n seconds to fill.
  for (int n = 1; n <= 16; ++n) {
    EXPECT_EQ(Throttle("user123 15 30 60"),
              "0 16 " + std::to_string(16 - n) + " -1 " + std::to_string(2 * n));
  }
  EXPECT_EQ(Throttle("user123 15 30 60"), "1 16 0 2 32");
  // 1.5 s later, 0.5 s are missing: rounded up to 1. Full after 30.5 s, rounded up to 31.
  limiter_.clock.Advance(milliseconds(1500));
  EXPECT_EQ(Throttle("user123 15 30 60"), "1 16 0 1 31");
  // At 2 s exactly one permit is refilled; it is taken and filling takes 32 s again.
  limiter_.clock.Advance(milliseconds(500));
  EXPECT_EQ(Throttle("user123 15 30 60"), "0 16 0 -1 32");
  EXPECT_EQ(Throttle("somebody-else 15 30 60"), "0 16 15 -1 2");
}

TEST_F(CellThrottle, TheLastNanosecondStillLimits) {
  EXPECT_EQ(Throttle("k 0 1 1"), "0 1 0 -1 1");
  limiter_.clock.Advance(seconds(1) - nanoseconds(1));
  EXPECT_EQ(Throttle("k 0 1 1"), "1 1 0 1 1");
  limiter_.clock.Advance(nanoseconds(1));
  EXPECT_EQ(Throttle("k 0 1 1"), "0 1 0 -1 1");
}

TEST_F(CellThrottle, QuantitiesChargeSeveralAtOnce) {
  // 4 1 1: L = 5, T = 1 s.
  EXPECT_EQ(Throttle("k 4 1 1 3"), "0 5 2 -1 3");
  // Three more do not fit: one second is missing. Nothing is charged.
  EXPECT_EQ(Throttle("k 4 1 1 3"), "1 5 2 1 3");
  EXPECT_EQ(Throttle("k 4 1 1 2"), "0 5 0 -1 5");
}

TEST_F(CellThrottle, AQuantityThatNeverFitsIsRefusedWithoutAPromise) {
  EXPECT_EQ(Throttle("k 4 1 1 6"), "1 5 5 -1 0");
  EXPECT_EQ(Throttle("k 4 1 1"), "0 5 4 -1 1");
  EXPECT_EQ(Throttle("k 4 1 1 6"), "1 5 4 -1 1");
  EXPECT_EQ(Throttle("k 4 1 1 9223372036854775807"), "1 5 4 -1 1");
}

TEST_F(CellThrottle, QuantityZeroOnlyLooks) {
  EXPECT_EQ(Throttle("k 4 1 1 0"), "0 5 5 -1 0");
  EXPECT_EQ(Throttle("k 4 1 1 5"), "0 5 0 -1 5");
  EXPECT_EQ(Throttle("k 4 1 1 0"), "0 5 0 -1 5");
  EXPECT_EQ(Throttle("k 4 1 1 0"), "0 5 0 -1 5");
}

TEST_F(CellThrottle, AClockThatStepsBackGrantsNothing) {
  EXPECT_EQ(Throttle("k 1 1 10 2"), "0 2 0 -1 20");
  limiter_.clock.Advance(-seconds(5));
  // The bucket is full 25 s from this moment; one permit is refilled after 15.
  EXPECT_EQ(Throttle("k 1 1 10"), "1 2 0 15 25");
  limiter_.clock.Advance(seconds(15));
  EXPECT_EQ(Throttle("k 1 1 10"), "0 2 0 -1 20");
  // A leap forward fills the bucket and no more than that.
  limiter_.clock.Advance(std::chrono::hours(24 * 365));
  EXPECT_EQ(Throttle("k 1 1 10"), "0 2 1 -1 10");
}

TEST_F(CellThrottle, RatesThatDoNotDivideAreExact) {
  // 3 per second: T = 333,333,333 1/3 ns. Three thirds are one second, not a nanosecond less.
  for (int n = 2; n >= 0; --n) {
    EXPECT_EQ(Throttle("k 2 3 1"), "0 3 " + std::to_string(n) + " -1 1");
  }
  limiter_.clock.Advance(nanoseconds(333'333'333));
  EXPECT_EQ(Throttle("k 2 3 1"), "1 3 0 1 1");
  limiter_.clock.Advance(nanoseconds(1));
  EXPECT_EQ(Throttle("k 2 3 1"), "0 3 0 -1 1");
}

TEST_F(CellThrottle, TheRateMayChangeFromCallToCall) {
  EXPECT_EQ(Throttle("k 9 1 1 10"), "0 10 0 -1 10");
  // L = 20, T = 1 s: ten seconds of debt leave ten permits, one is taken.
  EXPECT_EQ(Throttle("k 19 1 1"), "0 20 9 -1 11");
  // Back to the smaller bucket: 11 s of debt + 1 s against 10 s: two are missing.
  EXPECT_EQ(Throttle("k 9 1 1"), "1 10 0 2 11");
}

TEST_F(CellThrottle, TheLargestNumbersWork) {
  // L = 2^40, refilled with 2^31 per second: 2^40 / 2^31 = 512 s to fill; one permit takes under 1
  // ns.
  EXPECT_EQ(Throttle("big 1099511627775 2147483648 1 1099511627776"), "0 1099511627776 0 -1 512");
  // One permit per century, the longest possible period: 36,525 days of 86,400 s.
  EXPECT_EQ(Throttle("slow 0 1 3155760000"), "0 1 0 -1 3155760000");
  EXPECT_EQ(Throttle("slow 0 1 3155760000"), "1 1 0 3155760000 3155760000");
}

TEST_F(CellThrottle, BeyondTheLargestNumbersIsAnErrorNeverUnlimited) {
  EXPECT_EQ(Throttle("k 1099511627776 1 1"), "-ERR max_burst must be between 0 and 1099511627775");
  EXPECT_EQ(Throttle("k 9223372036854775807 1 1"),
            "-ERR max_burst must be between 0 and 1099511627775");
  EXPECT_EQ(Throttle("k 1 1099511627777 1"),
            "-ERR count_per_period must be between 1 and 1099511627776");
  EXPECT_EQ(Throttle("k 1 1 3155760001"), "-ERR period must be between 1 and 3155760000 seconds");
  EXPECT_EQ(Throttle("k 1 1 9223372036854775807"),
            "-ERR period must be between 1 and 3155760000 seconds");
  // Two permits at one per century: an empty bucket would take two centuries to fill.
  EXPECT_EQ(Throttle("k 1 1 3155760000").rfind("-ERR ", 0), 0U);
  EXPECT_EQ(Throttle("k 99999999999999999999 1 1"),
            "-ERR max_burst is not an integer: '99999999999999999999'");
}

TEST_F(CellThrottle, ZeroAndNegativeRatesAreErrors) {
  const std::string zero =
      "-ERR Zero rates are not supported: count_per_period and period must be at least 1";
  EXPECT_EQ(Throttle("k 1 0 1"), zero);
  EXPECT_EQ(Throttle("k 1 1 0"), zero);
  EXPECT_EQ(Throttle("k 1 0 0"), zero);
  EXPECT_EQ(Throttle("k 1 -1 1"), "-ERR count_per_period must be between 1 and 1099511627776");
  EXPECT_EQ(Throttle("k 1 1 -1"), "-ERR period must be between 1 and 3155760000 seconds");
  EXPECT_EQ(Throttle("k -1 1 1"), "-ERR max_burst must be between 0 and 1099511627775");
  EXPECT_EQ(Throttle("k 1 1 1 -1"),
            "-ERR quantity must not be negative; 0 checks without charging");
}

TEST_F(CellThrottle, WhatIsNotANumberIsNamed) {
  EXPECT_EQ(Throttle("k one 1 1"), "-ERR max_burst is not an integer: 'one'");
  EXPECT_EQ(Throttle("k 1 1.5 1"), "-ERR count_per_period is not an integer: '1.5'");
  EXPECT_EQ(Throttle("k 1 1 60s"), "-ERR period is not an integer: '60s'");
  EXPECT_EQ(Throttle("k 1 1 1 \"\""), "-ERR quantity is not an integer: ''");
  EXPECT_EQ(Throttle("k 1 1"), "-ERR wrong number of arguments for 'cl.throttle' command");
  EXPECT_EQ(Throttle("k 1 1 1 1 1"),
            "-ERR Usage: CL.THROTTLE <key> <max_burst> <count per period> <period> [<quantity>]");
  EXPECT_EQ(Throttle("k +1 +1 +1"), "0 2 1 -1 1");
  EXPECT_EQ(Throttle("k +-1 1 1"), "-ERR max_burst is not an integer: '+-1'");
}

TEST_F(CellThrottle, KeysAreBounded) {
  EXPECT_EQ(Throttle(std::string(4000, 'k') + " 0 1 1"), "0 1 0 -1 1");
  EXPECT_EQ(Throttle(std::string(4001, 'k') + " 0 1 1"), "-ERR the key is longer than 4000 bytes");
}

TEST_F(CellThrottle, KeysHaveANameSpaceOfTheirOwn) {
  Throttle("key|user-123 0 1 1");
  EXPECT_THAT(limiter_.keys(), ::testing::ElementsAre("cl|key|user-123"));
}

// Allowed, limit, remaining, seconds until full, seconds until a retry succeeds.
TEST_F(CrabThrottle, HasOnePermitLessAndAllowedComesFirst) {
  // L = 2, T = 10 s.
  EXPECT_EQ(Throttle("k 2 1 10"), "1 2 1 10 0");
  command_ = "throttle";
  EXPECT_EQ(Throttle("k 2 1 10 1"), "1 2 0 20 0");
  EXPECT_EQ(Throttle("k 2 1 10"), "0 2 0 20 10");
  limiter_.clock.Advance(milliseconds(9'500));
  EXPECT_EQ(Throttle("k 2 1 10"), "0 2 0 11 1");
  EXPECT_EQ(Throttle("k 2 1 10 0"), "1 2 0 11 0");
}

TEST_F(CrabThrottle, AQuantityThatNeverFitsIsNotToldToRetryAtOnce) {
  // L = 5, T = 60 s: six permits are one more than a full bucket holds, 1000 are 995 more.
  EXPECT_EQ(Throttle("k 5 1 60 6"), "0 5 5 0 60");
  EXPECT_EQ(Throttle("k 5 1 60 1000"), "0 5 5 0 59700");
  // Empty: 300 s until it is full, and 60 s more.
  EXPECT_EQ(Throttle("k 5 1 60 5"), "1 5 0 300 0");
  EXPECT_EQ(Throttle("k 5 1 60 6"), "0 5 0 300 360");
  // 3 per second: (4 - 2) / 3 s, rounded up.
  EXPECT_EQ(Throttle("third 2 3 1 4"), "0 2 2 0 1");
  // The longest time is 2^63 - 1 ns, which is 9,223,372,036.85 s.
  EXPECT_EQ(Throttle("k 5 1 60 9223372036854775807"), "0 5 0 300 9223372037");
}

TEST_F(CrabThrottle, NamesTheArgumentThatIsWrong) {
  const std::string burst = "-ERR max_burst must be between 1 and 1099511627776";
  EXPECT_EQ(Throttle("k 0 1 1"), burst);
  EXPECT_EQ(Throttle("k -9223372036854775808 1 1"), burst);
  EXPECT_EQ(Throttle("k 1099511627777 1 1"), burst);
  // L = 2^40, refilled with 2^31 per second: 512 s to fill.
  EXPECT_EQ(Throttle("big 1099511627776 2147483648 1 1099511627776"), "1 1099511627776 0 512 0");
  EXPECT_EQ(Throttle("k 1 1"), "-ERR wrong number of arguments for 'throttle' command");
  EXPECT_EQ(Throttle("k 2 1 10 1 1"), "-ERR wrong number of arguments for 'throttle' command");
  EXPECT_EQ(Throttle("k 2 1 10 -1"),
            "-ERR quantity must not be negative; 0 checks without charging");
  EXPECT_EQ(Throttle(std::string(4001, 'k') + " 1 1 1"), "-ERR the key is longer than 4000 bytes");
}

TEST(QuotaCache, GivesEachRateItsOwnQuota) {
  QuotaCache cache;
  // More rates than the cache has places, twice over: replaced entries are created again.
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t burst = 0; burst < 1000; ++burst) {
      const Quota* const quota = cache.Find({burst, 2 + burst % 7, 60});
      ASSERT_NE(quota, nullptr);
      EXPECT_EQ(*quota, *Quota::TokenBucket(burst + 1, 2 + burst % 7, seconds(60)));
    }
  }
  EXPECT_EQ(cache.Find({1, 0, 1}), nullptr);
}

}  // namespace
}  // namespace weir::resp
