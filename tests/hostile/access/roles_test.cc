// Permissions on the endpoints of the program: keys have roles, calls that affect others need a key
// if keys are configured, and wrong keys are counted, logged and slowed down.

#include "e2e/service/fixture.h"
#include "support/tcp_connection.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kAdmin = "admin-key-0123456789";
constexpr const char* kReader = "reader-key-0123456789";
constexpr const char* kOperator = "operator-key-0123456789";
constexpr const char* kPayments = "payments-key-0123456789";
constexpr const char* kDeployer = "deployer-key-0123456789";
constexpr const char* kGate = "gateway-key-0123456789";

class Access : public ServiceTest {
 protected:
  void ServeWithKeys(const std::string& more = "", const std::vector<std::string>& flags = {}) {
    const auto secret = dir_.Write("operator.key", std::string(kOperator) + "\n");
    std::vector<std::string> arguments = {
        "--config", dir_.Write("weir.yaml", "admin: {keys: [" + std::string(kAdmin) +
                                                "]}\n"
                                                "access:\n"
                                                "  keys:\n"
                                                "    - {name: reader, roles: [read], key: " +
                                                kReader +
                                                "}\n"
                                                "    - {name: operator, roles: [operate], file: " +
                                                secret.string() +
                                                "}\n"
                                                "    - payments:slots+send:" +
                                                kPayments + "\n    - gateway:check:" + kGate +
                                                "\n    - ci:policies:" + kDeployer + "\n" + more)
                        .string()};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    Serve(arguments);
  }

  int Status(const char* key, std::string_view method, std::string_view path,
             std::string_view body = {}) {
    HttpClient client = Client();
    HttpHeaders headers = {{"Content-Type", "application/json"}};
    if (key != nullptr) headers.emplace_back("X-API-Key", key);
    return client.Send(method, path, body, headers).status;
  }

  static std::string Command(const std::vector<std::string>& words) {
    std::string text = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words) {
      text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
    return text;
  }
};

constexpr std::string_view kSlotConfig =
    R"({"configName":"c","maxPerWindow":100,"windowSize":"PT1M"})";
constexpr std::string_view kEvent =
    R"({"eventId":"e1","configName":"c","requestedTime":"2030-01-01T00:00:00Z"})";
constexpr std::string_view kRefund = R"({"key":"a","cost":1})";

TEST_F(Access, WhatTakesFromOthersNeedsAKeyWhereThereAreKeys) {
  ServeWithKeys();
  ASSERT_EQ(Status(kAdmin, "POST", "/admin/rate-limit/config", kSlotConfig), 201);
  EXPECT_EQ(Status(nullptr, "POST", "/v1/check", R"({"key":"a","cost":80})"), 200);
  EXPECT_EQ(Status(nullptr, "POST", "/v1/refund", R"({"key":"a","cost":80})"), 401);
  EXPECT_EQ(Status(nullptr, "POST", "/v1/release", R"({"key":"a","lease":1})"), 401);
  EXPECT_EQ(Status(nullptr, "GET", "/v1/auth?release=296230c00000000000000007"), 401);
  EXPECT_EQ(Status(nullptr, "POST", "/api/v1/slots", kEvent), 401) << "it is executed";
  EXPECT_EQ(Status(nullptr, "POST", "/api/v1/slots/batch", "{}"), 401);
  EXPECT_EQ(Status(kGate, "POST", "/api/v1/slots", kEvent), 403);
  EXPECT_EQ(Status(kPayments, "POST", "/api/v1/slots", kEvent), 200);
  EXPECT_EQ(Status(nullptr, "GET", "/api/v1/slots/e1"), 401) << "it shows the payload";
  EXPECT_EQ(Status(nullptr, "GET", "/api/v1/slots/due?config=pay"), 401);
  EXPECT_EQ(Status(kPayments, "GET", "/api/v1/slots/e1"), 200);
  EXPECT_EQ(Status(nullptr, "DELETE", "/api/v1/slots/e1"), 401);
  EXPECT_EQ(Status(nullptr, "POST", "/api/v1/slots/e1/reschedule",
                   R"({"requestedTime":"2030-01-01T01:00:00Z"})"),
            401);
  EXPECT_EQ(Status(nullptr, "POST", "/api/send", R"({"userId":"u","message":"m"})"), 401);

  EXPECT_EQ(Status(kGate, "POST", "/v1/refund", kRefund), 200);
  EXPECT_EQ(Status(kPayments, "POST", "/api/v1/slots/e1/reschedule",
                   R"({"requestedTime":"2030-01-01T01:00:00Z"})"),
            200);
  EXPECT_EQ(Status(kPayments, "DELETE", "/api/v1/slots/e1"), 200);
  // A key that may do one thing may not do another.
  EXPECT_EQ(Status(kGate, "DELETE", "/api/v1/slots/e1"), 403);
  EXPECT_EQ(Status(kReader, "POST", "/api/send", R"({"userId":"u","message":"m"})"), 403);
  EXPECT_EQ(Status(kPayments, "POST", "/v1/refund", kRefund), 403);
}

TEST_F(Access, RolesOfTheAdminApi) {
  ServeWithKeys();
  constexpr std::string_view kPolicy = R"({"key":"k","type":"TOKEN_BUCKET","capacity":1})";
  EXPECT_EQ(Status(nullptr, "GET", "/admin/status"), 401);
  EXPECT_EQ(Status(kReader, "GET", "/admin/status"), 200);
  EXPECT_EQ(Status(kReader, "POST", "/admin/reset/a"), 403);
  EXPECT_EQ(Status(kOperator, "GET", "/admin/status"), 200);
  EXPECT_EQ(Status(kOperator, "POST", "/admin/reset/a"), 200);
  EXPECT_EQ(Status(kOperator, "POST", "/admin/policies", kPolicy), 403);
  EXPECT_EQ(Status(kGate, "GET", "/admin/status"), 403);
  EXPECT_EQ(Status(kAdmin, "POST", "/admin/policies", kPolicy), 201);
}

TEST_F(Access, WhoAppliesPoliciesMayDoNothingElse) {
  ServeWithKeys();
  constexpr std::string_view kPolicy = R"({"key":"k","type":"TOKEN_BUCKET","capacity":1})";
  EXPECT_EQ(Status(kDeployer, "POST", "/admin/policies", kPolicy), 201);
  EXPECT_EQ(Status(kDeployer, "PUT", "/admin/policies/k", kPolicy), 200);
  EXPECT_EQ(Status(kDeployer, "GET", "/admin/policies"), 200);
  EXPECT_EQ(Status(kDeployer, "GET", "/admin/policies/k/versions"), 200);
  EXPECT_EQ(Status(kDeployer, "DELETE", "/admin/policies/k"), 204);
  for (const char* path : {"/admin/status", "/admin/audit", "/admin/top", "/admin/explain?key=k",
                           "/admin/rate-limit/config", "/admin/policies/../status"}) {
    EXPECT_NE(Status(kDeployer, "GET", path), 200) << path;
  }
  EXPECT_EQ(Status(kDeployer, "POST", "/admin/reset/k"), 403);
  // The latest change, which deleted the policy: a role that may only read must not undo it.
  EXPECT_EQ(Status(kReader, "POST", "/admin/audit/3/undo"), 403);
  EXPECT_EQ(Status(kDeployer, "POST", "/admin/audit/3/undo"), 200);
  ASSERT_EQ(Status(kAdmin, "POST", "/admin/rate-limit/config", kSlotConfig), 201);
  EXPECT_EQ(Status(kDeployer, "POST", "/admin/audit/5/undo"), 403);  // not a policy's change
  EXPECT_EQ(Status(kAdmin, "POST", "/admin/audit/5/undo"), 204);
  EXPECT_EQ(Status(kDeployer, "POST", "/admin/rate-limit/config", kSlotConfig), 403);
  EXPECT_EQ(Status(kDeployer, "POST", "/v1/refund", kRefund), 403);
  HttpClient client = Client();
  const std::string log = client.Get("/admin/audit", {{"X-API-Key", kReader}}).body;
  EXPECT_THAT(log, HasSubstr(R"("who":"key ci from 127.0.0.1","action":"policy.delete")"));
  EXPECT_THAT(log, HasSubstr(R"("who":"key ci from 127.0.0.1","action":"policy.undo")"));
}

TEST_F(Access, ASettingOpensOrClosesEach) {
  ServeWithKeys("  open: [slots, give_back]\n");
  EXPECT_EQ(Status(nullptr, "POST", "/v1/refund", kRefund), 200);
  EXPECT_EQ(Status(nullptr, "POST", "/v1/check", R"({"key":"a"})"), 401);
  EXPECT_EQ(Status(nullptr, "GET", "/v1/auth"), 401);
  EXPECT_EQ(Status(kGate, "POST", "/v1/check", R"({"key":"a"})"), 200);
  EXPECT_EQ(Status(kReader, "POST", "/v1/check", R"({"key":"a"})"), 403);
  HttpClient client = Client();
  EXPECT_EQ(client.Get("/v1/auth", {{"X-Weir-Key", kGate}, {"X-API-Key", "the client's"}}).status,
            200);
}

TEST_F(Access, WhatWasDoneIsInTheAuditLog) {
  ServeWithKeys();
  ASSERT_EQ(Status(kAdmin, "POST", "/admin/rate-limit/config", kSlotConfig), 201);
  ASSERT_EQ(Status(kPayments, "POST", "/api/v1/slots", kEvent), 200);
  ASSERT_EQ(Status(kPayments, "DELETE", "/api/v1/slots/e1"), 200);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Status(kGate, "POST", "/v1/refund", kRefund), 200);
  HttpClient client = Client();
  EXPECT_TRUE(WaitUntil([&] {
    const std::string log = client.Get("/admin/audit", {{"X-API-Key", kReader}}).body;
    return log.find("slot.cancel") != std::string::npos &&
           log.find("check.refund") != std::string::npos;
  }));
}

// The log shows eight digits of a key's digest; other keys with the same digits are easy to find.
TEST_F(Access, AKeyThatNobodyLookedAtIsNotInTheAuditLog) {
  ServeWithKeys("  open: [check, slots, slots_change]\n");
  ASSERT_EQ(Status(kAdmin, "POST", "/admin/rate-limit/config", kSlotConfig), 201);
  ASSERT_EQ(Status(nullptr, "POST", "/api/v1/slots", kEvent), 200);
  ASSERT_EQ(Status("somebody-elses-key-0123", "DELETE", "/api/v1/slots/e1"), 200);
  HttpClient client = Client();
  std::string log;
  EXPECT_TRUE(WaitUntil([&] {
    log = client.Get("/admin/audit", {{"X-API-Key", kReader}}).body;
    return log.find("slot.cancel") != std::string::npos;
  }));
  EXPECT_THAT(log, HasSubstr(R"("who":"127.0.0.1","action":"slot.cancel")"));
}

TEST_F(Access, WrongKeysAreLoggedOnceAndSlowedDown) {
  ServeWithKeys();
  int unknown = 0;
  int slowed = 0;
  HttpClient client = Client();
  for (int i = 0; i < 30; ++i) {
    const HttpResponse refused =
        client.Get("/admin/status", {{"X-API-Key", "guess-number-" + std::to_string(i)}});
    unknown += refused.status == 401 ? 1 : 0;
    slowed += refused.status == 429 ? 1 : 0;
    EXPECT_TRUE(refused.status != 429 || refused.HasHeader("Retry-After"));
  }
  EXPECT_EQ(unknown + slowed, 30);
  EXPECT_GE(slowed, 15);  // a slow machine gives one more try every six seconds
  EXPECT_TRUE(weir_->process().WaitForError("wrong key").has_value());
  EXPECT_THAT(weir_->process().error_output(), Not(HasSubstr("guess-number")));
  EXPECT_THAT(client.Get("/metrics").body, HasSubstr("weir_wrong_keys_total"));
  // Checks from the same address still work.
  EXPECT_EQ(Status(nullptr, "POST", "/v1/check", R"({"key":"a"})"), 200);
}

TEST_F(Access, RedisClientsHaveTheRolesOfTheirPassword) {
  ServeWithKeys("", {"--resp", "127.0.0.1:0"});
  TcpConnection resp(weir_->Port("resp"));
  const auto ask = [&resp](const std::vector<std::string>& words) {
    resp.Send(Command(words));
    return resp.ReadThrough("\r\n");
  };
  EXPECT_THAT(ask({"WEIR.REFUND", "a"}), StartsWith("-NOPERM"));
  EXPECT_THAT(ask({"WEIR.RELEASE", "a", "7"}), StartsWith("-NOPERM"));
  EXPECT_THAT(ask({"WEIR.SETTLE", "a", "7"}), StartsWith("-NOPERM"));
  EXPECT_THAT(ask({"AUTH", kReader}), StartsWith("-WRONGPASS"));
  EXPECT_THAT(ask({"AUTH", kGate}), StartsWith("+OK"));
  EXPECT_THAT(ask({"WEIR.RELEASE", "a", "7"}), Not(StartsWith("-NOPERM")));
  EXPECT_THAT(ask({"WEIR.SETTLE", "a", "7"}), StartsWith("-ERR reservation: "));
  EXPECT_THAT(ask({"WEIR.RESET", "a"}), StartsWith("-NOPERM"));
  EXPECT_THAT(ask({"AUTH", kAdmin}), StartsWith("+OK"));
  EXPECT_THAT(ask({"WEIR.RESET", "a"}), StartsWith("+OK"));
}

// A client of the store API may do anything to any key.
TEST_F(Access, OnlyAKeyOfTheRoleStoreMayUseThisAsAStore) {
  const std::string nodes = "nodes-key-0123456789";
  ServeWithKeys("    - nodes:store:" + nodes + "\n", {"--resp", "127.0.0.1:0"});
  TcpConnection resp(weir_->Port("resp"));
  const auto ask = [&resp](const std::vector<std::string>& words) {
    resp.Send(Command(words));
    return resp.ReadThrough("\r\n");
  };
  EXPECT_THAT(ask({"WEIR.APPLY", "x"}), StartsWith("-NOPERM"));
  for (const char* key : {kGate, kOperator}) {
    EXPECT_THAT(ask({"AUTH", key}), StartsWith("+OK"));
    EXPECT_THAT(ask({"WEIR.APPLY", "x"}), StartsWith("-NOPERM")) << key;
  }
  for (const char* key : {nodes.c_str(), kAdmin}) {
    EXPECT_THAT(ask({"AUTH", key}), StartsWith("+OK"));
    EXPECT_THAT(ask({"WEIR.APPLY", "x"}), StartsWith("-ERR unsupported version")) << key;
  }
  EXPECT_THAT(ask({"AUTH", nodes}), StartsWith("+OK"));
  EXPECT_THAT(ask({"WEIR.RESET", "a"}), StartsWith("-NOPERM"));
  EXPECT_THAT(ask({"WEIR.REFUND", "a"}), StartsWith("-NOPERM"));
}

TEST_F(Access, RedisPasswordsCannotBeGuessedQuickly) {
  ServeWithKeys("", {"--resp", "127.0.0.1:0"});
  TcpConnection resp(weir_->Port("resp"));
  for (int i = 0; i < 30; ++i) {
    resp.Send(Command({"AUTH", "guess-number-" + std::to_string(i)}));
    EXPECT_THAT(resp.ReadThrough("\r\n"), StartsWith("-WRONGPASS"));
  }
  // Even the right one is rejected now.
  resp.Send(Command({"AUTH", kAdmin}));
  EXPECT_THAT(resp.ReadThrough("\r\n"), StartsWith("-WRONGPASS"));
  EXPECT_TRUE(weir_->process().WaitForError("wrong key").has_value());
}

TEST_F(Access, KeysOfTheRespDoorAloneCannotBeGuessedQuicklyEither) {
  Serve({"--resp", "127.0.0.1:0", "--resp-key", "an-eight-or-more"});
  TcpConnection resp(weir_->Port("resp"));
  const auto guess = [&resp](const std::string& word) {
    resp.Send(Command({"AUTH", word}));
    return resp.ReadThrough("\r\n");
  };
  for (int i = 0; i < 30; ++i) {
    EXPECT_THAT(guess("guess-number-" + std::to_string(i)), StartsWith("-WRONGPASS"));
  }
  EXPECT_TRUE(weir_->process().WaitForError("wrong key").has_value());
  // Most were not even checked. Nor is the right one until the address has paused.
  const std::string metrics = Client().Get("/metrics").body;
  const std::size_t at = metrics.find("\nweir_wrong_keys_total ");
  ASSERT_NE(at, std::string::npos) << metrics;
  const int counted = std::stoi(metrics.substr(at + 23));
  EXPECT_GE(counted, 10);
  EXPECT_LT(counted, 25);  // a slow machine gives one more try every six seconds
  EXPECT_TRUE(WaitUntil([&] { return guess("an-eight-or-more").starts_with("+OK"); }));
}

}  // namespace
}  // namespace weir::test
