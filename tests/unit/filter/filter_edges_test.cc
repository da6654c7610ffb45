// Requests that lack something, or have too much of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/filter.h"

namespace weir {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;

using Headers = std::multimap<std::string, std::string>;

constexpr Nanos kStart = Nanos{500'000} * 3'600 * 1'000'000'000;

FilterRule Rule(std::string name, std::vector<LimitBy> by, std::int64_t limit,
                std::string route = {}) {
  return {.name = std::move(name),
          .by = std::move(by),
          .quota = *Quota::FixedWindow(limit, hours(1)),
          .route = std::move(route)};
}

class FilterEdges : public testing::Test {
 protected:
  Filter Make(FilterOptions options) {
    options.engine.clock = &clock_;
    auto filter = Filter::Create(std::move(options));
    EXPECT_TRUE(filter) << filter.error().message;
    return std::move(*filter);
  }
  static FilterRequest Request(std::string_view target, const Headers& headers,
                               std::string_view peer = "192.0.2.1") {
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

  ManualClock clock_{kStart};
  const Headers none_{};
};

TEST_F(FilterEdges, ARequestWithoutHeadersIsLimitedByItsAddressAlone) {
  Filter filter = Make({.rules = {Rule("ip", {LimitBy::kIp}, 1), Rule("key", {LimitBy::kApiKey}, 1),
                                  Rule("user", {LimitBy::kUser}, 1)},
                        .trusted_proxies = {"192.0.2.0/24"},
                        .user_header = "X-User"});
  const FilterRequest bare{.method = "GET", .target = "/", .peer = "192.0.2.1", .header = nullptr};
  const FilterVerdict first = filter.Check(bare);
  EXPECT_TRUE(first.allowed);
  EXPECT_EQ(first.key, "ip:192.0.2.1") << "no header says that the proxy speaks for another";
  const FilterVerdict second = filter.Check(bare);
  EXPECT_EQ(second.rule, "ip");
  EXPECT_EQ(second.content_type, "text/plain; charset=utf-8");
}

TEST_F(FilterEdges, AUsersHeaderThatCameTwiceIsRefusedUnlessTheHostSaysWhoItIs) {
  const Headers twice = {{"X-User", "ada"}, {"X-User", "bob"}};
  Filter by_header = Make({.rules = {Rule("user", {LimitBy::kUser}, 1)}, .user_header = "X-User"});
  EXPECT_EQ(by_header.Check(Request("/", twice)).status, 400);
  Filter by_host = Make({.rules = {Rule("user", {LimitBy::kUser}, 1)},
                         .user = [](const FilterRequest&) { return std::string("ada"); },
                         .user_header = "X-User"});
  const FilterVerdict verdict = by_host.Check(Request("/", twice));
  EXPECT_TRUE(verdict.allowed);
  EXPECT_EQ(verdict.key, "user:ada");
}

TEST_F(FilterEdges, APeerThatIsNoAddressIsNotLimitedByAddress) {
  Filter filter = Make({.rules = {Rule("ip", {LimitBy::kIp}, 1)}});
  for (int i = 0; i < 3; ++i) {
    const FilterVerdict verdict = filter.Check(Request("/", none_, "unix:/run/app.sock"));
    EXPECT_TRUE(verdict.allowed);
    EXPECT_EQ(verdict.rule, "");
  }
}

TEST_F(FilterEdges, ARequestWithoutATargetMeetsRulesThatLookAtNoRoute) {
  Filter filter = Make({.rules = {Rule("ip", {LimitBy::kIp}, 5), Rule("page", {LimitBy::kRoute}, 5),
                                  Rule("pay", {LimitBy::kIp}, 5, "/pay*")}});
  const FilterVerdict verdict = filter.Check(Request("", none_));
  EXPECT_EQ(verdict.rule, "ip");
  EXPECT_EQ(verdict.decision.remaining, 4);
}

// `/pay/x/` has two names, with and without the slash at the end: one rule for both is charged
// once, a rule for each path for both.
TEST_F(FilterEdges, NamesOfOneRouteThatShareAQuotaChargeItOnce) {
  Filter filter = Make({.rules = {Rule("all", {LimitBy::kRoute}, 5, "/pay*")}});
  EXPECT_EQ(filter.Check(Request("/pay/x/", none_)).decision.remaining, 4);
  Filter each = Make({.rules = {Rule("each", {LimitBy::kRoute}, 5)}});
  each.Check(Request("/pay/x/", none_));
  EXPECT_EQ(each.Check(Request("/pay/x", none_)).decision.remaining, 3);
}

TEST_F(FilterEdges, APermitOfARuleThatIsGoneIsNotReleased) {
  Filter filter = Make({.rules = {Rule("ip", {LimitBy::kIp}, 5)}});
  FilterVerdict verdict;
  verdict.leases.push_back({.rule = 1, .key = "jobs\nip:192.0.2.1", .lease = 7});
  EXPECT_FALSE(filter.Release(verdict));
}

TEST(FilterEdgesCreate, BoundsAreKept) {
  const auto error = [](FilterOptions options) {
    const auto filter = Filter::Create(std::move(options));
    return filter ? std::string("none") : filter.error().message;
  };
  std::vector<FilterRule> rules;
  for (int i = 0; i < 64; ++i) {
    rules.push_back(Rule("rule" + std::to_string(i), {LimitBy::kIp}, 1));
  }
  EXPECT_EQ(error({.rules = rules}), "none");
  rules.push_back(Rule("one more", {LimitBy::kIp}, 1));
  EXPECT_EQ(error({.rules = rules}), "rules: more than 64");
  FilterRule rule = Rule("a", {LimitBy::kIp}, 1);
  EXPECT_THAT(error({.rules = {rule}, .ipv4_prefix = -1}), HasSubstr("ipv4_prefix"));
  EXPECT_EQ(error({.rules = {rule}, .ipv4_prefix = 0, .ipv6_prefix = 0}), "none");
  EXPECT_THAT(error({.rules = {rule}, .ipv6_prefix = 129}), HasSubstr("ipv6_prefix"));
  rule.cost = 0;
  EXPECT_EQ(error({.rules = {rule}}), "rules[0].cost: must be at least 1");
}

}  // namespace
}  // namespace weir
