// Separate privileges: a user who may create tables runs `weir migrate`, and the service runs as a
// user with the privileges documented in docs/reference/configuration.md, and no others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "e2e/stores/nodes.h"
#include "support/http_client.h"
#include "support/mariadb_server.h"
#include "support/mysql_server.h"
#include "support/postgres_server.h"
#include "support/wait.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPolicies = R"(
policies:
  - { name: p, match: { user: "*" }, quota: { fixed_window: { limit: 3, window: 100d } } }
)";
constexpr const char* kCheck = R"({"descriptors":[{"user":"1"}]})";

void Migrate(std::vector<std::string> words) {
  words.insert(words.begin(), "migrate");
  WeirProcess weir(words);
  ASSERT_EQ(weir.process().Wait(), 0) << weir.process().error_output();
}

std::string As(std::string url, const std::string& user) {
  const std::size_t at = url.find("weir@");
  EXPECT_NE(at, std::string::npos) << url;
  return url.replace(at, 4, user);
}

bool ChannelUp(HttpClient& client) {
  return client.Get("/admin/status").body.find("\"channelUp\":true") != std::string::npos;
}

void ExpectLimitOfThree(HttpClient& client) {
  for (int i = 0; i < 3; ++i) {
    const HttpResponse passed = client.Post("/v1/check", kCheck);
    EXPECT_THAT(passed.body, HasSubstr("\"allowed\":true"));
    EXPECT_THAT(passed.body, Not(HasSubstr("\"degraded\":true")));
  }
  EXPECT_THAT(client.Post("/v1/check", kCheck).body, HasSubstr("\"allowed\":false"));
}

void ExpectPoliciesChange(HttpClient& client) {
  constexpr const char* kPolicy =
      R"({"policyKey":"k","type":"TOKEN_BUCKET","capacity":5,"match":{"user":"9"}})";
  EXPECT_EQ(client.Post("/admin/policies", kPolicy).status, 201);
  EXPECT_EQ(client.Send("PUT", "/admin/policies/k", kPolicy).status, 200);
  EXPECT_EQ(client.Send("DELETE", "/admin/policies/k").status, 204);
}

template <typename Server>
void ExpectDocumentedRightsDo(const std::string& more = {}) {
  Server server;
  Migrate({"--store", server.url()});
  server.Query(
      "CREATE USER low@'%'; CREATE USER low@localhost;"
      "GRANT SELECT, INSERT, UPDATE, DELETE ON weir.weir_limits TO low@'%', low@localhost;"
      "GRANT SELECT, INSERT, DELETE ON weir.weir_messages TO low@'%', low@localhost;"
      "GRANT SELECT, INSERT, DELETE ON weir.weir_policy TO low@'%', low@localhost;"
      "GRANT SELECT, INSERT, DELETE ON weir.weir_policy_match TO low@'%', low@localhost;"
      "GRANT SELECT, UPDATE ON weir.weir_policy_state TO low@'%', low@localhost;"
      "GRANT SELECT, INSERT, DELETE ON weir.weir_audit TO low@'%', low@localhost;"
      "GRANT SELECT ON weir.weir_migrations TO low@'%', low@localhost;" +
      more);
  Nodes nodes(1, As(server.url(), "low"), kPolicies,
              {"--store-migrate", "false", "--store-timeout", "10s"});
  HttpClient client(nodes.ports()[0]);
  ExpectLimitOfThree(client);
  ExpectPoliciesChange(client);
  EXPECT_TRUE(WaitUntil([&] { return ChannelUp(client); })) << nodes[0].process().error_output();
  // Nor does it need more when it is configured to create them: all exist.
  Nodes making(1, As(server.url(), "low"), kPolicies, {"--store-timeout", "10s"});
  HttpClient other(making.ports()[0]);
  EXPECT_TRUE(WaitUntil([&] { return ChannelUp(other); })) << making[0].process().error_output();
}

TEST(Rights, MariadbNeedsThoseThatAreDocumented) { ExpectDocumentedRightsDo<MariadbServer>(); }

TEST(Rights, MysqlNeedsThoseThatAreDocumented) {
  if (!MysqlServer::Absence().empty()) GTEST_SKIP() << MysqlServer::Absence();
  ExpectDocumentedRightsDo<MysqlServer>();
}

// It refuses a locking read of columns to a user with all privileges on the table and none
// on the database.
TEST(Rights, Mysql8NeedsThoseThatAreDocumented) {
  if (!Mysql8Server::Absence().empty()) GTEST_SKIP() << Mysql8Server::Absence();
  ExpectDocumentedRightsDo<Mysql8Server>("GRANT SELECT ON weir.* TO low@'%', low@localhost");
}

TEST(Rights, WhatTheChannelLacksIsSaidOnce) {
  MariadbServer server;
  Migrate({"--store", server.url()});
  server.Query(
      "CREATE USER low@'%'; CREATE USER low@localhost;"
      "GRANT SELECT, INSERT, UPDATE, DELETE ON weir.weir_limits TO low@'%', low@localhost");
  Nodes nodes(1, As(server.url(), "low"), kPolicies,
              {"--store-migrate", "false", "--store-timeout", "10s", "--policy-store", "sqlite:"});
  HttpClient client(nodes.ports()[0]);
  ExpectLimitOfThree(client);
  const auto said = [&nodes] {
    const std::string log = nodes[0].process().error_output() + nodes[0].process().output();
    int times = 0;
    for (std::size_t at = log.find("cannot open the channel"); at != std::string::npos;
         at = log.find("cannot open the channel", at + 1)) {
      ++times;
    }
    return times;
  };
  ASSERT_TRUE(WaitUntil([&] { return said() == 1; }));
  EXPECT_FALSE(WaitUntil([&] { return said() > 1; }, std::chrono::seconds(2)));
  // Once it has the privilege, it recovers by itself.
  server.Query("GRANT SELECT, INSERT, DELETE ON weir.weir_messages TO low@'%', low@localhost");
  EXPECT_TRUE(WaitUntil([&] { return ChannelUp(client); }));
}

TEST(Rights, PostgresNeedsThoseThatAreDocumented) {
  PostgresServer server;
  Migrate({"--store", server.url(), "--slots-store", server.url(), "--notify-store", server.url()});
  server.Query(
      "CREATE USER low; REVOKE CREATE ON SCHEMA public FROM PUBLIC;"
      "GRANT SELECT ON weir_migrations TO low;"
      "GRANT SELECT, INSERT, UPDATE, DELETE ON weir_limits TO low;"
      "GRANT SELECT, INSERT, DELETE ON weir_policy, weir_policy_match TO low;"
      "GRANT SELECT, UPDATE ON weir_policy_state TO low;"
      "GRANT SELECT, INSERT, DELETE ON weir_audit TO low;"
      "GRANT SELECT, INSERT, UPDATE, DELETE ON rate_limit_config, rate_limit_window_counter, "
      "rate_limit_tenant_counter, rate_limit_event_slot, rate_limit_event_change, "
      "rate_limit_event_archive, rate_limit_execution, rate_limit_claim_note TO low;"
      "GRANT SELECT, INSERT, UPDATE, DELETE ON rate_limit_store, notify_key, "
      "notify_message, notify_dead_letter, notify_delayed, notify_preference, notify_sender TO "
      "low");
  // A table created by a new version must be in the list, or the next upgrade fails where
  // privileges are granted one by one.
  EXPECT_EQ(server.Query("SELECT string_agg(relname, ' ') FROM pg_class WHERE relkind = 'r' AND "
                         "relnamespace = 'public'::regnamespace AND "
                         "NOT has_table_privilege('low', oid, 'SELECT')"),
            "");
  const std::string low = As(server.url(), "low");
  Nodes nodes(1, low, kPolicies,
              {"--store-migrate", "false", "--store-timeout", "10s", "--slots-store", low,
               "--notify-store", low, "--notify-broker", "kafka://127.0.0.1:9"});
  HttpClient client(nodes.ports()[0]);
  ExpectLimitOfThree(client);
  ExpectPoliciesChange(client);
  EXPECT_TRUE(WaitUntil([&] { return ChannelUp(client); })) << nodes[0].process().error_output();
  const HttpResponse configured =
      client.Post("/admin/rate-limit/config",
                  R"({"configName":"default","windowSize":"PT4S","maxPerWindow":2})");
  EXPECT_EQ(configured.status, 201) << configured.body;
  const HttpResponse slot = client.Post(
      "/api/v1/slots",
      R"({"eventId":"e","configName":"default","requestedTime":"2030-06-01T09:00:00Z"})");
  EXPECT_EQ(slot.status, 200) << slot.body;
  const HttpResponse user =
      client.Post("/api/config", R"({"userId":"1","rateLimit":2,"timeWindow":10})");
  EXPECT_EQ(user.status, 200) << user.body;
}

}  // namespace
}  // namespace weir::test
