// The services of `docker compose up`, started here: the commands and environment of compose.yaml
// with real servers, and the calls as written in the specifications.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "e2e/compose/compose_file.h"
#include "support/http_client.h"
#include "support/kafka_server.h"
#include "support/mysql_server.h"
#include "support/paths.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;

class Compose : public testing::Test {
 protected:
  Compose() : file_(SourcePath("compose.yaml")) {
    file_.Replace("/var/lib/weir", dir_ / "volume");
    // Inside a container the ports are open to its network; here to this machine only.
    for (const char* port : {":8080", ":8081", ":6380"}) {
      file_.Replace(std::string("0.0.0.0") + port, "127.0.0.1:0");
    }
    // Requests through the published port have this address there, and that one here.
    file_.Replace("172.30.7.1", "127.0.0.1");
  }

  void StartServers() {
    postgres_ = std::make_unique<PostgresServer>();
    postgres_->CreateDatabase("weir");
    postgres_->Query("ALTER ROLE weir PASSWORD 'weir'");
    postgres_->RequirePasswords();
    redis_ = std::make_unique<RedisServer>();
    file_.Replace("postgres:5432", "127.0.0.1:" + std::to_string(postgres_->port()));
    const std::string redis = redis_->url();
    file_.Replace("redis://redis:6379", redis);
  }

  void StartKafka() {
    kafka_ = std::make_unique<KafkaServer>();
    file_.Replace("kafka:9092", kafka_->address());
  }

  std::unique_ptr<WeirProcess> Start(const std::string& service) {
    SpawnOptions options;
    for (const auto& [name, value] : file_.Environment(service)) {
      options.env.push_back(name + "=" + value);
    }
    return std::make_unique<WeirProcess>(file_.Command(service), options);
  }

  /// The service's own health check, on its port in this test.
  bool Healthy(const std::string& service, WeirProcess* process) {
    std::vector<std::string> words = file_.Healthcheck(service);
    if (process != nullptr) {
      const std::string port = std::to_string(process->Port("http"));
      words.insert(words.end(), {"--url", "http://127.0.0.1:" + port + "/readyz"});
    }
    WeirProcess check(words);
    return check.process().Wait() == 0;
  }

  static HttpResponse Json(HttpClient& client, const std::string& path, const std::string& body) {
    return client.Send("POST", path, body, {{"Content-Type", "application/json"}});
  }

  const TempDir dir_;
  ComposeFile file_;
  std::unique_ptr<PostgresServer> postgres_;
  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<KafkaServer> kafka_;
};

TEST_F(Compose, TheCallsOfEverySpecificationWork) {
  StartServers();
  StartKafka();
  const auto gateway = Start("gateway");
  const auto service = Start("service");
  const auto sender = Start("sender");
  ASSERT_TRUE(WaitUntil([&] { return Healthy("gateway", gateway.get()); }))
      << gateway->process().error_output();
  ASSERT_TRUE(WaitUntil([&] { return Healthy("service", service.get()); }))
      << service->process().error_output();
  ASSERT_TRUE(WaitUntil([&] { return Healthy("sender", nullptr); }))
      << sender->process().error_output();
  HttpClient client(gateway->Port("http"));

  // Notifications: no key is needed from the published port.
  const HttpResponse configured =
      Json(client, "/api/config", R"({"userId":"42","rateLimit":3,"timeWindow":1})");
  EXPECT_EQ(configured.status, 200) << configured.body;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Json(client, "/api/send", R"({"userId":"42","message":"hello"})").status,
              i < 3 ? 200 : 429);
  }
  EXPECT_TRUE(WaitUntil([&] {
    return sender->process().output().find("SMS SENT userId=\"42\" message=\"hello\"") !=
           std::string::npos;
  }));

  // Slots, on PostgreSQL.
  const HttpResponse config =
      Json(client, "/admin/rate-limit/config",
           R"({"configName":"default","maxPerWindow":100,"windowSize":"PT4S"})");
  EXPECT_THAT(config.status, testing::AnyOf(200, 201)) << config.body;
  const HttpResponse slot =
      Json(client, "/api/v1/slots",
           R"({"eventId":"test-1","configName":"default","requestedTime":"2025-06-01T12:00:00Z"})");
  EXPECT_THAT(slot.status, testing::AnyOf(200, 201)) << slot.body;
  EXPECT_EQ(postgres_->Query("SELECT count(*) FROM rate_limit_event_slot", "weir"), "1");

  // The rate-limit service: a policy created at one node is in force at the other.
  const HttpResponse policy = Json(
      client, "/admin/policies",
      R"({"key":"user-123","type":"TOKEN_BUCKET","capacity":2,"refillRate":1,"windowSeconds":60})");
  EXPECT_EQ(policy.status, 201) << policy.body;
  HttpClient other(service->Port("http"));
  EXPECT_TRUE(WaitUntil([&] {
    return other.Post("/v1/peek", R"({"key":"user-123"})").body.find("\"limit\":2,") !=
           std::string::npos;
  }));
  EXPECT_THAT(other.Get("/admin/metrics/user-123").body, HasSubstr("\"capacity\":2"));
  EXPECT_EQ(Json(other, "/admin/reset/user-123", "").status, 200);
  EXPECT_GT(service->Port("grpc"), 0);
  EXPECT_GT(service->Port("resp"), 0);
  // The service's own page.
  EXPECT_EQ(client.Get("/").status, 200);
}

// The others start only when these succeed: they fail while the server is down.
TEST_F(Compose, TheServersHealthChecksTellUpFromDown) {
  StartServers();
  const auto healthy = [](const std::vector<std::string>& words, std::vector<std::string> env) {
    return RunProgram(words, {.env = std::move(env)}).exit_code == 0;
  };
  const auto postgres = [&] {
    return healthy(file_.ServerHealthcheck("postgres"),
                   {"PGHOST=127.0.0.1", "PGPORT=" + std::to_string(postgres_->port())});
  };
  EXPECT_TRUE(postgres());
  postgres_->Stop();
  EXPECT_FALSE(postgres());
  const auto redis = [&] {
    std::vector<std::string> words = file_.ServerHealthcheck("redis");
    words.insert(words.begin() + 1, {"-p", std::to_string(redis_->port())});
    return healthy(words, {});
  };
  EXPECT_TRUE(redis());
  redis_->Kill();
  EXPECT_FALSE(redis());
  if (!MysqlServer::Absence().empty()) GTEST_SKIP() << MysqlServer::Absence();
  MysqlServer server;
  const auto mysql = [&] {
    return healthy(file_.ServerHealthcheck("mysql"),
                   {"MYSQL_PASSWORD=weir", "MYSQL_TCP_PORT=" + std::to_string(server.port())});
  };
  EXPECT_TRUE(mysql());
  server.Stop();
  EXPECT_FALSE(mysql());
}

TEST_F(Compose, AnotherAddressNeedsAKey) {
  // A caller other than the network's gateway: here, by giving the gateway another address.
  StartServers();
  SpawnOptions options;
  for (const auto& [name, value] : file_.Environment("service"))
    options.env.push_back(name + "=" + value);
  options.env.push_back("WEIR_ADMIN_ALLOW=172.30.7.1");
  WeirProcess service(file_.Command("service"), options);
  HttpClient client(service.Port("http"));
  EXPECT_EQ(client.Post("/v1/check", R"({"key":"a"})").status, 200);
  EXPECT_EQ(client.Get("/admin/policies").status, 403);
}

TEST_F(Compose, TheProfileOnMysqlWorks) {
  if (!MysqlServer::Absence().empty()) GTEST_SKIP() << MysqlServer::Absence();
  MysqlServer mysql;
  mysql.Query("CREATE USER compose@'%' IDENTIFIED BY 'weir'; GRANT ALL ON weir.* TO compose@'%'");
  file_.Replace("weir:weir@mysql:3306", "compose:weir@127.0.0.1:" + std::to_string(mysql.port()));
  const auto service = Start("service-mysql");
  ASSERT_TRUE(WaitUntil([&] { return Healthy("service-mysql", service.get()); }))
      << service->process().error_output();
  HttpClient client(service->Port("http"));
  EXPECT_THAT(client.Post("/v1/check", R"({"key":"user-123"})").body,
              HasSubstr("\"allowed\":true"));
  EXPECT_NE(mysql.Query("SELECT count(*) FROM weir_limits"), "0\n");
}

}  // namespace
}  // namespace weir::test
