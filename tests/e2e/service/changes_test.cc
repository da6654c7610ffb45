// Configuration changes other than policies: who may make them, the audit log, and undo.

#include <regex>

#include "e2e/service/fixture.h"
#include "support/tcp_connection.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Changes : public ServiceTest {
 protected:
  HttpResponse Ask(const char* method, const std::string& target, const std::string& body = {}) {
    HttpClient client = Client();
    return client.Send(method, target, body,
                       {{"X-API-Key", "first-secret"}, {"Content-Type", "application/json"}});
  }
  // Sends are not changes; they reach the log within a second, at any time.
  std::string Latest() { return Ask("GET", "/admin/audit?limit=1&except=notify.send").body; }
  HttpResponse UndoLatest() {
    const std::string latest = Latest();
    std::smatch found;
    if (!std::regex_search(latest, found, std::regex("\"id\":([0-9]+)"))) return {};
    return Ask("POST", "/admin/audit/" + found[1].str() + "/undo");
  }
};

// printf first-secret | sha256sum begins with this.
constexpr const char* kWho = "\"who\":\"key e0a5091e from 127.0.0.1\"";
constexpr const char* kLimit = R"({"userId":"42","rateLimit":3,"timeWindow":60})";

TEST_F(Changes, UsersLimitsNeedTheKey) {
  Serve({"--admin-key", "first-secret"});
  HttpClient client = Client();
  const HttpResponse stranger = client.Post("/api/config", kLimit);
  EXPECT_EQ(stranger.status, 401);
  EXPECT_THAT(stranger.body, StartsWith(R"({"status":401,"error":"Unauthorized","message":")"));
  EXPECT_EQ(client.Post("/api/config", kLimit, {{"X-API-Key", "first-secre"}}).status, 401);
  EXPECT_EQ(client
                .Post("/api/config", kLimit,
                      {{"X-API-Key", "first-secret"}, {"Origin", "http://evil.example"}})
                .status,
            403);
  EXPECT_EQ(client.Get("/api/config/42").status, 401);
  EXPECT_EQ(Ask("GET", "/api/config/42").status, 404);
  EXPECT_THAT(Latest(), StartsWith("{\"changes\":[]"));
  EXPECT_EQ(Ask("POST", "/api/config", kLimit).status, 200);
  EXPECT_EQ(client.Post("/api/send", R"({"userId":"42","message":"hello"})").status, 401);
  EXPECT_EQ(Ask("POST", "/api/send", R"({"userId":"42","message":"hello"})").status, 200);
}

TEST_F(Changes, UsersLimitsAreAuditedAndUndone) {
  Serve({"--admin-key", "first-secret"});
  ASSERT_EQ(Ask("POST", "/api/config", kLimit).status, 200);
  EXPECT_THAT(Latest(), AllOf(HasSubstr(kWho), HasSubstr(R"("action":"notify.config")"),
                              HasSubstr(R"("target":"notify:42","before":null,"after":)" +
                                        std::string(kLimit))));
  ASSERT_EQ(Ask("POST", "/api/config", R"({"user_id":42,"rate_limit":9,"time_window":1})").status,
            200);
  const std::string nine = R"({"userId":"42","rateLimit":9,"timeWindow":1})";
  EXPECT_THAT(Latest(), HasSubstr("\"before\":" + std::string(kLimit) + ",\"after\":" + nine));
  EXPECT_EQ(Ask("POST", "/admin/audit/1/undo").status, 409);  // not the latest

  const HttpResponse undone = UndoLatest();
  EXPECT_EQ(undone.status, 200);
  EXPECT_EQ(undone.body, kLimit);
  EXPECT_THAT(Ask("GET", "/api/config/42").body, HasSubstr("\"rateLimit\":3,\"timeWindow\":60"));
  EXPECT_THAT(Latest(), AllOf(HasSubstr(R"("action":"notify.undo")"), HasSubstr("\"undoes\":2")));
  EXPECT_EQ(UndoLatest().body, nine);  // an undo can be undone

  ASSERT_EQ(Ask("POST", "/api/config", R"({"userId":"new","rateLimit":1,"timeWindow":1})").status,
            200);
  EXPECT_EQ(UndoLatest().status, 204);  // it did not exist before
  EXPECT_EQ(Ask("GET", "/api/config/new").status, 404);
  EXPECT_EQ(Ask("POST", "/api/send", R"({"userId":"new","message":"m"})").status, 404);
  // A refused request is not a change.
  EXPECT_EQ(Ask("POST", "/api/config", R"({"userId":"new","rateLimit":0,"timeWindow":1})").status,
            400);
  EXPECT_THAT(Latest(), HasSubstr(R"("action":"notify.undo")"));
}

TEST_F(Changes, ACountThatIsResetIsInTheLog) {
  Serve({"--admin-key", "first-secret"});
  const auto count = [&](const char* body) {
    EXPECT_EQ(Ask("POST", "/api/config", body).status, 200);
    return Latest();
  };
  const auto send = [&] {
    EXPECT_EQ(Ask("POST", "/api/send", R"({"userId":"42","message":"m"})").status, 200);
  };
  const std::string numbers = R"({"userId":"42","rateLimit":3,"timeWindow":60)";
  EXPECT_THAT(count(kLimit), Not(HasSubstr("currentCount"))) << "it is new";
  send();
  send();
  EXPECT_THAT(count(R"({"userId":"42","rateLimit":3,"timeWindow":60,"keepCount":true})"),
              HasSubstr("\"before\":" + numbers + "},\"after\":" + numbers + "}"));
  EXPECT_THAT(count(kLimit), HasSubstr("\"before\":" + numbers + ",\"currentCount\":2},\"after\":" +
                                       numbers + ",\"currentCount\":0}"));
  EXPECT_THAT(count(kLimit), Not(HasSubstr("currentCount"))) << "there was nothing to reset";
  send();
  ASSERT_EQ(Ask("DELETE", "/api/config/42").status, 204);
  EXPECT_THAT(Latest(), HasSubstr("\"before\":" + numbers + ",\"currentCount\":1},\"after\":null"));
  EXPECT_EQ(UndoLatest().body, kLimit);
  send();
  count(kLimit);
  send();
  EXPECT_EQ(UndoLatest().body, kLimit) << "sends since then are not a change";

  const auto channel = [&] {
    EXPECT_EQ(
        Ask("PUT", "/api/config/42/channels/sms", R"({"rateLimit":9,"timeWindow":60})").status,
        200);
    return Latest();
  };
  channel();
  send();
  EXPECT_THAT(channel(), HasSubstr(R"("currentCount":1},"after":)"));
}

TEST_F(Changes, SlotConfigsAreAuditedAndUndone) {
  Serve({"--admin-key", "first-secret"});
  const auto active = [&] { return Ask("GET", "/admin/rate-limit/config/pay"); };
  const auto put = [&](const char* max) {
    return Ask("POST", "/admin/rate-limit/config",
               std::string(R"({"configName":"pay","windowSize":"PT1M","maxPerWindow":)") + max +
                   R"(,"tenants":{"a":3}})")
        .status;
  };
  ASSERT_EQ(put("100"), 201);
  EXPECT_THAT(Latest(),
              AllOf(HasSubstr(kWho), HasSubstr(R"("target":"slots:pay","before":null,"after":{)")));
  ASSERT_EQ(put("7"), 201);
  EXPECT_THAT(Latest(), HasSubstr(R"("before":{"configName":"pay","version":1,)"));
  EXPECT_EQ(Ask("POST", "/admin/audit/1/undo").status, 409) << "it is not the latest";
  EXPECT_EQ(UndoLatest().status, 200);
  EXPECT_THAT(active().body, AllOf(HasSubstr("\"maxPerWindow\":100"), HasSubstr("\"version\":3"),
                                   HasSubstr(R"("tenants":{"*":1,"a":3})")));

  ASSERT_EQ(Ask("DELETE", "/admin/rate-limit/config/pay").status, 200);
  EXPECT_THAT(Latest(), HasSubstr(R"("after":null)"));
  EXPECT_EQ(active().status, 404);
  EXPECT_EQ(UndoLatest().status, 200);
  EXPECT_THAT(active().body, HasSubstr("\"maxPerWindow\":100"));
  EXPECT_EQ(Ask("POST", "/admin/audit/2/undo").status, 409) << "it was undone";

  ASSERT_EQ(Ask("POST", "/admin/rate-limit/config",
                R"({"configName":"other","windowSize":"PT1M","maxPerWindow":1})")
                .status,
            201);
  EXPECT_EQ(UndoLatest().status, 204);
  EXPECT_EQ(Ask("GET", "/admin/rate-limit/config/other").status, 404);
  // Nothing is known about a cache before it was flushed.
  ASSERT_EQ(Ask("POST", "/admin/rate-limit/cache/flush").status, 200);
  EXPECT_THAT(Latest(), HasSubstr(R"("action":"slots.flush")"));
  EXPECT_EQ(UndoLatest().status, 409);
}

class RespChanges : public Changes {
 protected:
  std::string Say(TcpConnection& connection, const std::string& line) {
    connection.Send(line + "\r\n");
    return connection.ReadThrough("\r\n");
  }
};

TEST_F(RespChanges, AResetNeedsAnAdminKeyAndIsAudited) {
  Serve({"--admin-key", "first-secret", "--resp", "127.0.0.1:0"});
  TcpConnection connection(weir_->Port("resp"));
  EXPECT_THAT(Say(connection, "WEIR.RESET user-1"), StartsWith("-NOPERM "));
  EXPECT_THAT(Say(connection, "AUTH wrong"), StartsWith("-WRONGPASS "));
  EXPECT_THAT(Say(connection, "WEIR.RESET user-1"), StartsWith("-NOPERM "));
  EXPECT_THAT(Latest(), StartsWith("{\"changes\":[]"));
  EXPECT_EQ(Say(connection, "AUTH first-secret"), "+OK\r\n");
  EXPECT_EQ(Say(connection, "WEIR.RESET nobody"), "+OK\r\n");
  ASSERT_EQ(Check(R"({"key":"user-1"})").status, 200);
  EXPECT_EQ(Say(connection, "WEIR.RESET user-1"), "+OK\r\n");
  EXPECT_TRUE(WaitUntil([&] { return Latest().find("key:user-1") != std::string::npos; }));
  EXPECT_THAT(Latest(), AllOf(HasSubstr(kWho), HasSubstr(R"("action":"key.reset")")));
  EXPECT_THAT(Ask("GET", "/admin/audit").body, Not(HasSubstr("nobody"))) << "nothing was deleted";
  EXPECT_EQ(Say(connection, "RESET"), "+RESET\r\n");
  EXPECT_THAT(Say(connection, "WEIR.RESET user-1"), StartsWith("-NOPERM "));
}

TEST_F(RespChanges, WithoutKeysLoopbackMayReset) {
  Serve({"--resp", "127.0.0.1:0"});
  TcpConnection connection(weir_->Port("resp"));
  ASSERT_EQ(Check(R"({"key":"user-1"})").status, 200);
  EXPECT_EQ(Say(connection, "WEIR.RESET user-1"), "+OK\r\n");
  EXPECT_TRUE(WaitUntil([&] { return Latest().find("key:user-1") != std::string::npos; }));
  EXPECT_THAT(Latest(), HasSubstr("\"who\":\"127.0.0.1\""));
}

}  // namespace
}  // namespace weir::test
