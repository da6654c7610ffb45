// Limits of single channels next to the user's own, with PostgreSQL, Kafka and, in front, Redis.

#include "integration/notify/fixture.h"

namespace weir::notify::test {
namespace {

using std::chrono::minutes;
using testing::HasSubstr;

class ChannelLimits : public ServersTest, public testing::WithParamInterface<Path> {
 protected:
  ChannelLimits() {
    if (GetParam() == Path::kRedis) {
      EXPECT_TRUE(gateway.WaitForRedis(true));
    }
  }

  static std::string PathOf(const std::string& user, const std::string& channel) {
    return "/api/config/" + user + "/channels/" + channel;
  }
  Response Limit(const std::string& user, const std::string& channel, int limit, int window) {
    return gateway.Call("PUT", PathOf(user, channel),
                        R"({"rateLimit":)" + std::to_string(limit) + R"(,"timeWindow":)" +
                            std::to_string(window) + "}");
  }
  std::future<Response> StartOn(const std::string& user, const std::string& channel,
                                const std::string& key = {}) {
    return gateway.Start(
        "POST", "/api/send",
        R"({"userId":")" + user + R"(","message":"m","channel":")" + channel + "\"}", key);
  }
  Response SendOn(const std::string& user, const std::string& channel,
                  const std::string& key = {}) {
    return Gateways::Wait(StartOn(user, channel, key));
  }
  /// How many of `count` concurrent messages were sent.
  int SentOf(const std::string& user, const std::string& channel, int count) {
    std::vector<std::future<Response>> sends;
    for (int i = 0; i < count; ++i) sends.push_back(StartOn(user, channel));
    int sent = 0;
    for (auto& send : sends) sent += Gateways::Wait(std::move(send)).status == 200 ? 1 : 0;
    return sent;
  }
  std::string CountOf(const std::string& user, const std::string& channel) {
    return servers_->Ask("SELECT current_count FROM rate_limit_store WHERE user_id = '" + user +
                         "' || E'\\x1f" + channel + "'");
  }
  /// User names are not reused: the tests share servers.
  static std::string Named(const std::string& name) {
    return name + (GetParam() == Path::kRedis ? "-r" : "-p");
  }

  Gateways gateway{*servers_, GetParam()};
};

TEST_P(ChannelLimits, HoldBesideTheUsersLimit) {
  const std::string user = Named("beside");
  gateway.Configure(user, 10, 10);
  const Response saved = Limit(user, "email", 2, 10);
  EXPECT_EQ(saved.status, 200);
  EXPECT_THAT(saved.body, HasSubstr(R"("channel":"email","rateLimit":2,"timeWindow":10)"));
  const Response first = SendOn(user, "email");
  EXPECT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(HeaderOf(first, "X-RateLimit-Remaining"), "1") << "the stricter of the two";
  EXPECT_EQ(SendOn(user, "email").status, 200);
  const Response refused = SendOn(user, "email");
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.body, HasSubstr("on channel 'email': all 2"));
  EXPECT_EQ(HeaderOf(refused, "Retry-After"), "600");
  EXPECT_EQ(SendOn(user, "sms").status, 200) << "other channels go on";
  EXPECT_THAT(gateway.Call("GET", "/api/quota/" + user).body, HasSubstr(R"("used":3)"));
  gateway.clock.Advance(minutes(10));
  EXPECT_EQ(SendOn(user, "email").status, 200) << "its next window";
}

TEST_P(ChannelLimits, APlaceIsTakenInBothWindowsOrInNone) {
  const std::string user = Named("both");
  gateway.Configure(user, 3, 10);
  Limit(user, "email", 5, 10);
  EXPECT_EQ(SentOf(user, "email", 30), 3) << "the user's limit is the smaller one";
  EXPECT_EQ(CountOf(user, "email"), "3") << "refused sends count nowhere";
  EXPECT_THAT(SendOn(user, "email").body, HasSubstr("for user '" + user + "': all 3"));
  gateway.Configure(user, 100, 10);
  EXPECT_EQ(SentOf(user, "email", 30), 2);
  EXPECT_EQ(SentOf(user, "push", 30), 30);
  EXPECT_EQ(servers_->CountOf(user), "32");
}

TEST_P(ChannelLimits, CountFromTheMomentTheyAreSetUntilTheyAreRemoved) {
  const std::string user = Named("later");
  gateway.Configure(user, 100, 10);
  EXPECT_EQ(SentOf(user, "sms", 5), 5);
  Limit(user, "sms", 1, 10);
  EXPECT_EQ(SentOf(user, "sms", 5), 1);
  EXPECT_EQ(gateway.Call("GET", PathOf(user, "sms")).status, 200);
  EXPECT_EQ(gateway.Call("DELETE", PathOf(user, "sms")).status, 204);
  EXPECT_EQ(gateway.Call("DELETE", PathOf(user, "sms")).status, 404);
  EXPECT_EQ(gateway.Call("GET", PathOf(user, "sms")).status, 404);
  EXPECT_EQ(SentOf(user, "sms", 5), 5);
  EXPECT_THAT(gateway.Call("GET", "/api/quota/" + user).body, HasSubstr(R"("used":11)"));
}

TEST_P(ChannelLimits, ARepeatedKeyIsNotCountedAgain) {
  const std::string user = Named("keyed");
  gateway.Configure(user, 100, 10);
  Limit(user, "email", 1, 10);
  const Response first = SendOn(user, "email", "k");
  EXPECT_EQ(first.status, 200);
  const Response again = SendOn(user, "email", "k");
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(HeaderOf(again, "Idempotency-Replayed"), "true");
  EXPECT_EQ(CountOf(user, "email"), "1");
}

TEST_P(ChannelLimits, AreNotForUsersWithoutALimitNorForNonsense) {
  const std::string user = Named("nobody");
  EXPECT_EQ(Limit(user, "email", 2, 10).status, 200);
  EXPECT_EQ(SendOn(user, "email").status, 404) << "the user is still unknown";
  EXPECT_EQ(Limit(user, "E-Mail", 2, 10).status, 400);
  EXPECT_EQ(Limit(user, "email", 0, 10).status, 400);
  EXPECT_EQ(gateway
                .Call("POST", "/api/config",
                      "{\"userId\":\"a\\u001femail\",\"rateLimit\":1,\"timeWindow\":1}")
                .status,
            400)
      << "nobody makes a channel's row by a user's name";
}

TEST_P(ChannelLimits, AndUsersLimitsKeepTheirCountsIfTheRequestSaysSo) {
  const std::string user = Named("kept");
  const auto keep = [&](int limit, int window) {
    return gateway.Call("POST", "/api/config",
                        R"({"userId":")" + user + R"(","rateLimit":)" + std::to_string(limit) +
                            R"(,"timeWindow":)" + std::to_string(window) + R"(,"keepCount":true})");
  };
  EXPECT_THAT(keep(2, 10).body, HasSubstr(R"("currentCount":0)"));
  EXPECT_EQ(SentOf(user, "sms", 3), 2);
  // The same again, as a script does it: no place is freed, at any moment.
  const Response same = keep(2, 10);
  EXPECT_THAT(same.body, HasSubstr(R"("currentCount":2)"));
  EXPECT_THAT(same.body, HasSubstr(R"("lastRefreshTime":"2026-01-02T03:04:05)"));
  EXPECT_EQ(gateway.Send(user).status, 429);
  keep(3, 10);
  EXPECT_EQ(SentOf(user, "sms", 3), 1) << "one more than before";
  gateway.clock.Advance(minutes(10));
  EXPECT_EQ(SentOf(user, "sms", 4), 3) << "the window ended ten minutes after its start";
  const std::string body = R"({"rateLimit":1,"timeWindow":60,"keepCount":true})";
  EXPECT_EQ(gateway.Call("PUT", PathOf(user, "email"), body).status, 200);
  gateway.Configure(user, 100, 10);
  EXPECT_EQ(SentOf(user, "email", 2), 1);
  EXPECT_THAT(gateway.Call("PUT", PathOf(user, "email"), body).body,
              HasSubstr(R"("currentCount":1)"));
  EXPECT_EQ(SentOf(user, "email", 2), 0);
}

INSTANTIATE_TEST_SUITE_P(Paths, ChannelLimits, testing::Values(Path::kPostgres, Path::kRedis),
                         [](const auto& path) {
                           return path.param == Path::kRedis ? "Redis" : "Postgres";
                         });

}  // namespace
}  // namespace weir::notify::test
