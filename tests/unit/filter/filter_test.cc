#include "weir/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Headers = std::multimap<std::string, std::string>;

// A whole number of hours, so that no fixed window ends in the middle of a test.
constexpr Nanos kStart = Nanos{500'000} * 3'600 * 1'000'000'000;

FilterRequest Request(std::string_view target, std::string_view peer, const Headers& headers) {
  return {.method = "GET",
          .target = target,
          .peer = peer,
          .header = [&headers](std::string_view name,
                               std::size_t nth) -> std::optional<std::string_view> {
            auto [begin, end] = headers.equal_range(std::string(name));
            for (; begin != end; ++begin) {
              if (nth-- == 0) return begin->second;
            }
            return std::nullopt;
          }};
}

class FilterTest : public ::testing::Test {
 protected:
  Filter Make(FilterOptions options) {
    options.engine.clock = &clock_;
    auto filter = Filter::Create(std::move(options));
    EXPECT_TRUE(filter) << filter.error().message;
    return std::move(*filter);
  }
  Filter Make(std::vector<FilterRule> rules) {
    return Make(FilterOptions{.rules = std::move(rules)});
  }

  static FilterVerdict Ask(Filter& filter, std::string_view target = "/",
                           std::string_view peer = "192.0.2.1", const Headers& headers = {}) {
    return filter.Check(Request(target, peer, headers));
  }

  ManualClock clock_{kStart};
};

FilterRule Rule(std::string name, std::vector<LimitBy> by, std::int64_t limit,
                std::chrono::nanoseconds window = minutes(1)) {
  return {.name = std::move(name), .by = std::move(by), .quota = *Quota::SlidingLog(limit, window)};
}

TEST_F(FilterTest, SlidesItsWindowAsTheSeedDoes) {
  // 100 per 60 minutes by address; the window begins with the first request, not with the hour.
  Filter filter = Make({Rule("per-ip", {LimitBy::kIp}, 100, hours(1))});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Ask(filter).allowed) << i;
    clock_.Advance(seconds(30));  // the hundredth is sent 49 min 30 s after the first
  }
  // It is minute 50 now: the first request leaves the window in 10 minutes.
  const FilterVerdict denied = Ask(filter);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.body, "Try again in 600 seconds");
  EXPECT_EQ(denied.content_type, "text/plain; charset=utf-8");
  EXPECT_THAT(denied.headers.front(), Pair("Retry-After", "600"));
  EXPECT_TRUE(Ask(filter, "/", "192.0.2.2").allowed);

  clock_.Advance(minutes(10));
  EXPECT_TRUE(Ask(filter).allowed);
  EXPECT_FALSE(Ask(filter).allowed);  // the second one expires 30 s later
  clock_.Advance(seconds(30));
  EXPECT_TRUE(Ask(filter).allowed);
}

TEST_F(FilterTest, AnswersTheWorkedExample) {
  Filter filter = Make({Rule("per-ip", {LimitBy::kIp}, 100, hours(1))});
  EXPECT_TRUE(Ask(filter).allowed);  // at 12:05
  clock_.Advance(minutes(13));
  EXPECT_TRUE(Ask(filter).allowed);  // at 12:18
  clock_.Advance(minutes(57));
  const FilterVerdict verdict = Ask(filter);  // at 13:15
  EXPECT_TRUE(verdict.allowed);
  // The first has expired; the second and this one count.
  EXPECT_THAT(verdict.headers, Contains(Pair("X-RateLimit-Remaining", "98")));
}

TEST_F(FilterTest, AddsHeadersToWhatIsAllowed) {
  Filter filter = Make({Rule("burst", {LimitBy::kIp}, 3)});
  EXPECT_THAT(
      Ask(filter).headers,
      ElementsAre(Pair("X-RateLimit-Limit", "3"), Pair("X-RateLimit-Remaining", "2"),
                  Pair("X-RateLimit-Reset", "60"), Pair("RateLimit-Policy", "\"burst\";q=3;w=60"),
                  Pair("RateLimit", "\"burst\";r=2;t=60")));
}

TEST_F(FilterTest, CanKeepHeadersToItself) {
  Filter filter = Make(FilterOptions{.rules = {Rule("burst", {LimitBy::kIp}, 1)},
                                     .x_ratelimit_headers = false,
                                     .ietf_headers = false});
  EXPECT_THAT(Ask(filter).headers, IsEmpty());
  EXPECT_THAT(Ask(filter).headers, ElementsAre(Pair("Retry-After", "60")));
}

TEST_F(FilterTest, AnswersJsonToThoseWhoAsk) {
  Filter filter = Make({Rule("burst", {LimitBy::kIp}, 1)});
  Ask(filter);
  const FilterVerdict denied = Ask(filter, "/", "192.0.2.1", {{"Accept", "application/json"}});
  EXPECT_EQ(denied.content_type, "application/json");
  EXPECT_THAT(denied.body, HasSubstr("\"status\":429,\"error\":\"Too Many Requests\","
                                     "\"message\":\"Try again in 60 seconds\""));
}

TEST_F(FilterTest, NamesKeysInOneOrder) {
  FilterOptions options{
      .rules = {Rule("all", {LimitBy::kRoute, LimitBy::kUser, LimitBy::kApiKey, LimitBy::kIp}, 9)},
      .user_header = "X-User"};
  Filter filter = Make(std::move(options));
  EXPECT_EQ(Ask(filter, "/v1/pay?x", "192.0.2.1", {{"X-API-Key", "k"}, {"X-User", "123"}}).key,
            "ip:192.0.2.1|api_key:k|user:123|route:/v1/pay");
  Filter pair = Make(FilterOptions{.rules = {Rule("pay", {LimitBy::kRoute, LimitBy::kUser}, 9)},
                                   .user_header = "X-User"});
  EXPECT_EQ(Ask(pair, "/v1/pay", "192.0.2.1", {{"X-User", "123"}}).key, "user:123|route:/v1/pay");
}

TEST_F(FilterTest, KeepsHostileValuesApart) {
  Filter filter = Make(FilterOptions{.rules = {Rule("pay", {LimitBy::kUser, LimitBy::kRoute}, 9)},
                                     .user_header = "X-User"});
  EXPECT_EQ(Ask(filter, "/", "192.0.2.1", {{"X-User", "1|route:/v1/pay"}}).key,
            "user:1%7Croute:/v1/pay|route:/");
  EXPECT_EQ(Ask(filter, "/", "192.0.2.1", {{"X-User", "1%7C"}}).key, "user:1%257C|route:/");
  EXPECT_EQ(Ask(filter, "/", "192.0.2.1", {{"X-User", std::string(10'000, 'u')}}).key.size(),
            5U + 256U + 8U);  // "user:", what is kept of the name, "|route:/"
}

TEST_F(FilterTest, SkipsARuleWhoseIdentityIsMissing) {
  Filter filter = Make({Rule("per-key", {LimitBy::kApiKey}, 1)});
  for (int i = 0; i < 3; ++i) {
    const FilterVerdict verdict = Ask(filter);
    EXPECT_TRUE(verdict.allowed);
    EXPECT_THAT(verdict.headers, IsEmpty());
    EXPECT_EQ(verdict.rule, "");
  }
  const Headers headers = {{"X-API-Key", "k1"}};
  EXPECT_TRUE(Ask(filter, "/", "192.0.2.1", headers).allowed);
  EXPECT_FALSE(Ask(filter, "/", "192.0.2.9", headers).allowed);
  EXPECT_TRUE(Ask(filter, "/", "192.0.2.9", {{"X-API-Key", "k2"}}).allowed);
}

TEST_F(FilterTest, AsksTheCallbackWhoIsLoggedIn) {
  Filter filter = Make(FilterOptions{.rules = {Rule("per-user", {LimitBy::kUser}, 5)},
                                     .user = [](const FilterRequest& request) {
                                       return request.target == "/anonymous" ? "" : "ann";
                                     }});
  EXPECT_EQ(Ask(filter).key, "user:ann");
  EXPECT_EQ(Ask(filter, "/anonymous").key, "");
}

TEST_F(FilterTest, ChargesAllRulesOrNone) {
  Filter filter = Make({Rule("wide", {LimitBy::kIp}, 10), Rule("narrow", {LimitBy::kRoute}, 1)});
  EXPECT_EQ(Ask(filter, "/a").rule, "narrow");  // 0 left there, 9 in the other
  for (int i = 0; i < 20; ++i) {
    const FilterVerdict denied = Ask(filter, "/a");
    ASSERT_FALSE(denied.allowed);
    ASSERT_EQ(denied.rule, "narrow");
  }
  // The denials cost `wide` nothing: 9 other routes are allowed, and no tenth.
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(Ask(filter, "/" + std::to_string(i)).allowed) << i;
  EXPECT_EQ(Ask(filter, "/x").rule, "wide");
}

TEST_F(FilterTest, TellsTheLongestWaitOfSeveralRefusals) {
  Filter filter =
      Make({Rule("minute", {LimitBy::kIp}, 1), Rule("hour", {LimitBy::kIp}, 1, hours(1))});
  ASSERT_TRUE(Ask(filter).allowed);
  EXPECT_EQ(Ask(filter).body, "Try again in 3600 seconds");
}

TEST_F(FilterTest, LimitsTheRoutesOfARuleOnly) {
  FilterRule pay = Rule("pay", {LimitBy::kIp}, 1);
  pay.route = "/v1/pay";
  FilterRule files = Rule("files", {LimitBy::kIp, LimitBy::kRoute}, 2);
  files.route = "/files/*";
  Filter filter = Make({pay, files});
  EXPECT_TRUE(Ask(filter, "/v1/pay").allowed);
  EXPECT_FALSE(Ask(filter, "/v1//pay/").allowed);
  EXPECT_TRUE(Ask(filter, "/v1/payments").allowed);
  EXPECT_EQ(Ask(filter, "/files/a").key, "ip:192.0.2.1|route:/files/*");
  EXPECT_TRUE(Ask(filter, "/files/b").allowed);
  EXPECT_FALSE(Ask(filter, "/files/c").allowed);  // they share a quota of 2
}

TEST_F(FilterTest, CountsEveryReadingOfAPath) {
  FilterRule pay = Rule("pay", {LimitBy::kIp}, 1);
  pay.route = "/v1/pay";
  for (const char* spelling : {"/v1%2Fpay", "/V1/Pay", "/v1/pay;x", "/v1//pay", "/v1/pay/"}) {
    Filter filter = Make({pay});
    EXPECT_TRUE(Ask(filter, spelling).allowed) << spelling;
    EXPECT_FALSE(Ask(filter, "/v1/pay").allowed) << spelling;
  }
  // A rule that does not depend on the route is charged once.
  Filter filter = Make({Rule("per-ip", {LimitBy::kIp}, 9), Rule("page", {LimitBy::kRoute}, 9)});
  EXPECT_EQ(Ask(filter, "/A/").decision.remaining, 8);
  EXPECT_EQ(Ask(filter, "/a").decision.remaining, 7);
  EXPECT_EQ(Ask(filter, "/elsewhere").rule, "per-ip");
}

TEST_F(FilterTest, RefusesWhatCouldBeAnotherRequest) {
  Filter filter = Make({Rule("per-key", {LimitBy::kApiKey}, 1)});
  for (const char* target : {"/v1/../pay", "/v1%5Cpay", "/v1/%00", "v1"}) {
    const FilterVerdict verdict = Ask(filter, target);
    EXPECT_FALSE(verdict.allowed) << target;
    EXPECT_EQ(verdict.status, 400) << target;
    EXPECT_FALSE(verdict.body.empty());
  }
  const FilterVerdict doubled =
      Ask(filter, "/", "192.0.2.1",
          {{"X-API-Key", "a"}, {"X-API-Key", "b"}, {"Accept", "application/json"}});
  EXPECT_EQ(doubled.status, 400);
  EXPECT_THAT(doubled.body, HasSubstr("\"status\":400"));
  EXPECT_TRUE(Ask(filter, "/", "192.0.2.1", {{"X-API-Key", "a"}}).allowed);
}

TEST_F(FilterTest, BelievesForwardedForOfTrustedProxiesOnly) {
  Filter filter = Make(FilterOptions{.rules = {Rule("per-ip", {LimitBy::kIp}, 9)},
                                     .trusted_proxies = {"10.0.0.0/8"}});
  const Headers headers = {{"X-Forwarded-For", "1.1.1.1, 198.51.100.7"}};
  EXPECT_EQ(Ask(filter, "/", "192.0.2.1", headers).key, "ip:192.0.2.1");
  EXPECT_EQ(Ask(filter, "/", "10.0.0.1", headers).key, "ip:198.51.100.7");
}

TEST_F(FilterTest, GroupsIpv6Clients) {
  Filter filter = Make({Rule("per-ip", {LimitBy::kIp}, 1)});
  EXPECT_EQ(Ask(filter, "/", "2001:db8:1:2::1").key, "ip:2001:db8:1:2::/64");
  EXPECT_FALSE(Ask(filter, "/", "2001:db8:1:2::2").allowed);
  EXPECT_TRUE(Ask(filter, "/", "2001:db8:1:3::1").allowed);
  Filter single =
      Make(FilterOptions{.rules = {Rule("per-ip", {LimitBy::kIp}, 1)}, .ipv6_prefix = 128});
  EXPECT_EQ(Ask(single, "/", "2001:db8:1:2::1").key, "ip:2001:db8:1:2::1");
  EXPECT_EQ(Ask(single, "/", "::ffff:192.0.2.1").key, "ip:192.0.2.1");
}

TEST_F(FilterTest, ChargesTheCostOfARule) {
  FilterRule heavy = Rule("heavy", {LimitBy::kIp}, 5);
  heavy.cost = 3;
  Filter filter = Make({heavy});
  EXPECT_TRUE(Ask(filter).allowed);
  EXPECT_FALSE(Ask(filter).allowed);  // 2 are left
  heavy.cost = 6;
  Filter never = Make({heavy});
  const FilterVerdict denied = Ask(never);
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.decision.verdict, Verdict::kNever);
}

TEST_F(FilterTest, GrantsNoMoreUnderConcurrency) {
  Filter filter = Make({Rule("per-ip", {LimitBy::kIp}, 1'000)});
  std::atomic<int> allowed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) allowed += Ask(filter).allowed ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed, 1'000);
}

TEST_F(FilterTest, KeepsNoMoreKeysThanToldAndDropsIdleOnesFirst) {
  std::uint64_t dropped_active = 0;
  FilterOptions options{.rules = {Rule("per-ip", {LimitBy::kIp}, 1)}};
  options.engine.max_keys = 1'024;
  options.engine.on_evict = [&](const Eviction& eviction) { dropped_active += eviction.active; };
  Filter filter = Make(std::move(options));
  const auto address = [](int i) {
    return "10." + std::to_string(i / 65'536) + "." + std::to_string(i / 256 % 256) + "." +
           std::to_string(i % 256);
  };
  for (int i = 0; i < 500; ++i) Ask(filter, "/", address(i));
  clock_.Advance(minutes(2));  // all of them are fresh again
  for (int i = 1'000; i < 1'500; ++i) Ask(filter, "/", address(i));
  clock_.Advance(minutes(2));
  for (int i = 2'000; i < 2'500; ++i) Ask(filter, "/", address(i));
  EXPECT_LE(filter.engine().size(), 1'024U);
  EXPECT_EQ(dropped_active, 0U);
}

TEST_F(FilterTest, GivesBackThePermitsOfEveryConcurrencyRule) {
  FilterRule own = Rule("own", {LimitBy::kIp}, 1);
  own.quota = *Quota::Concurrency(1, minutes(10));
  FilterRule path = Rule("path", {LimitBy::kRoute}, 1);
  path.quota = *Quota::Concurrency(2, minutes(20));
  Filter filter = Make({Rule("rate", {LimitBy::kIp}, 100), own, path});
  const FilterVerdict one = Ask(filter, "/", "10.0.0.1");
  ASSERT_TRUE(one.allowed);
  ASSERT_EQ(one.leases.size(), 2U);
  EXPECT_EQ(one.leases[0].rule, 1U);
  EXPECT_EQ(one.leases[1].rule, 2U);
  EXPECT_TRUE(Ask(filter, "/", "10.0.0.2").allowed);
  const FilterVerdict full = Ask(filter, "/", "10.0.0.3");
  EXPECT_FALSE(full.allowed);
  EXPECT_TRUE(full.leases.empty());
  EXPECT_FALSE(filter.Release(full));
  EXPECT_TRUE(filter.Release(one));
  EXPECT_FALSE(filter.Release(one));
  EXPECT_TRUE(Ask(filter, "/", "10.0.0.3").allowed);
  EXPECT_FALSE(Ask(filter, "/", "10.0.0.1").allowed);  // the route is full again
}

TEST(FilterCreate, NamesTheFieldThatIsWrong) {
  const auto error = [](FilterOptions options) {
    const auto filter = Filter::Create(std::move(options));
    return filter ? std::string("none") : filter.error().message;
  };
  const FilterRule good = Rule("a", {LimitBy::kIp}, 1);
  EXPECT_EQ(error({.rules = {}}), "rules: give at least one");
  EXPECT_EQ(error({.rules = {good, good}}), "rules[0].name: \"a\" is used twice");
  EXPECT_EQ(error({.rules = {Rule("", {LimitBy::kIp}, 1)}}), "rules[0].name: is empty");
  EXPECT_THAT(error({.rules = {good, Rule("b", {}, 1)}}), HasSubstr("rules[1].by"));
  EXPECT_THAT(error({.rules = {good}, .trusted_proxies = {"x"}}), HasSubstr("trusted_proxies"));
  EXPECT_THAT(error({.rules = {good}, .ipv4_prefix = 33}), HasSubstr("ipv4_prefix"));
  EXPECT_THAT(error({.rules = {good}, .ipv6_prefix = -1}), HasSubstr("ipv6_prefix"));
}

}  // namespace
}  // namespace weir
