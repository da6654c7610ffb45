// deploy/make-databases.sh on real servers: the owner creates the tables, the service's user serves
// requests, and can do nothing else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/child_process.h"
#include "support/http_client.h"
#include "support/mariadb_server.h"
#include "support/mysql_server.h"
#include "support/paths.h"
#include "support/postgres_server.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kOwnerPassword = "o'wn\"er\\1";
constexpr const char* kUserPassword = "secret-2";

/// Runs the script, which must succeed, and returns its output.
std::string Make(std::vector<std::string> words, bool with_passwords) {
  words.insert(words.begin(), {"bash", SourcePath("deploy/make-databases.sh")});
  SpawnOptions options;
  if (with_passwords) {
    options.env.push_back(std::string("WEIR_DB_OWNER_PASSWORD=") + kOwnerPassword);
    options.env.push_back(std::string("WEIR_DB_PASSWORD=") + kUserPassword);
  }
  options.env.push_back("WEIR_DB=pay_limits");
  options.env.push_back("WEIR_DB_USER=weir_service");
  ChildProcess script(words, options);
  EXPECT_EQ(script.Wait(), 0) << script.error_output();
  return script.output();
}

/// The owner migrates; the service's user serves without permission to create tables.
void ExpectServes(const std::string& kind, std::uint16_t port) {
  const std::string at = "@127.0.0.1:" + std::to_string(port) + "/pay_limits";
  const std::string owner = kind + "://weir_owner:o%27wn%22er%5C1" + at;
  const std::string user = kind + "://weir_service:" + kUserPassword + at;
  std::vector<std::string> migrate = {"migrate", "--store", owner};
  std::vector<std::string> parts;
  if (kind == "postgres") {
    migrate.insert(migrate.end(), {"--slots-store", owner, "--notify-store", owner});
    parts = {"--slots-store", user, "--notify-store", user,
             // Configuring caps needs no broker; sending would.
             "--notify-broker", "kafka://127.0.0.1:1"};
  }
  WeirProcess migration(migrate);
  ASSERT_EQ(migration.process().Wait(), 0) << migration.process().error_output();
  const TempDir data;
  std::vector<std::string> serve = {
      "serve", "--http",          "127.0.0.1:0", "--grpc",  "off", "--resp",
      "off",   "--data",          data / "data", "--store", user,  "--store-migrate",
      "false", "--store-timeout", "10s"};
  serve.insert(serve.end(), parts.begin(), parts.end());
  WeirProcess service(serve);
  HttpClient client(service.Port("http"));
  const HttpResponse check = client.Post("/v1/check", R"({"key":"user-123"})");
  EXPECT_THAT(check.body, HasSubstr("\"allowed\":true"));
  EXPECT_THAT(check.body, Not(HasSubstr("degraded"))) << service.process().error_output();
  EXPECT_EQ(client
                .Post("/admin/policies",
                      R"({"key":"user-9","type":"TOKEN_BUCKET","capacity":5,"refillRate":1})")
                .status,
            201);
  if (kind == "postgres") {
    EXPECT_LT(client
                  .Post("/admin/rate-limit/config",
                        R"({"configName":"default","maxPerWindow":100,"windowSize":"PT4S"})")
                  .status,
              300);
    const HttpResponse cap =
        client.Send("POST", "/api/config", R"({"userId":"42","rateLimit":3,"timeWindow":1})",
                    {{"Content-Type", "application/json"}});
    EXPECT_EQ(cap.status, 200) << cap.body;
  }
}

TEST(Databases, Postgres) {
  PostgresServer server;
  const std::vector<std::string> words = {"postgres", "--dbname", server.url()};
  const std::string first = Make(words, false);
  EXPECT_THAT(first, HasSubstr("password of weir_owner: "));
  EXPECT_THAT(first, HasSubstr("password of weir_service: "));
  EXPECT_THAT(Make(words, false), Not(HasSubstr("password of"))) << "it may be repeated";
  EXPECT_THAT(Make(words, true), Not(HasSubstr("password of")));
  server.RequirePasswords();
  ExpectServes("postgres", server.port());
  EXPECT_EQ(server.Query("SELECT has_schema_privilege('weir_service', 'public', 'CREATE'), "
                         "has_table_privilege('weir_service', 'weir_limits', 'TRUNCATE'), "
                         "has_database_privilege('weir_service', 'pay_limits', 'CREATE')",
                         "pay_limits"),
            "f|f|f");
}

/// `pattern`: how its grants name the database.
template <typename Server>
void OnMysqlFamily(const std::string& pattern, std::vector<std::string> settings = {}) {
  Server server(std::move(settings));
  const std::vector<std::string> words = {"mysql",  "--protocol", "tcp",
                                          "--host", "127.0.0.1",  "--user",
                                          "weir",   "--port",     std::to_string(server.port())};
  // A `_` in a name must not match any other character.
  server.Query("CREATE DATABASE payxlimits; CREATE TABLE payxlimits.secret (n int)");
  EXPECT_THAT(Make(words, false), HasSubstr("password of weir_service: "));
  EXPECT_THAT(Make(words, false), Not(HasSubstr("password of")));
  Make(words, true);
  ExpectServes("mysql", server.port());
  const std::string grants = server.Query("SHOW GRANTS FOR weir_service@'%'");
  EXPECT_THAT(grants, HasSubstr("GRANT SELECT, INSERT, UPDATE, DELETE ON `" + pattern));
  EXPECT_THAT(grants, Not(HasSubstr("ALL PRIVILEGES")));
  const auto read = [&](const std::string& table) {
    return RunProgram({"mysql", "--no-defaults", "--protocol=tcp", "--host=127.0.0.1",
                       "--port=" + std::to_string(server.port()), "--user=weir_service",
                       std::string("--password=") + kUserPassword,
                       "--execute=SELECT * FROM " + table});
  };
  EXPECT_EQ(read("pay_limits.weir_limits").exit_code, 0);
  const RunResult neighbour = read("payxlimits.secret");
  EXPECT_NE(neighbour.exit_code, 0);
  EXPECT_THAT(neighbour.error_output, HasSubstr("denied"));
}

TEST(Databases, Mariadb) { OnMysqlFamily<MariadbServer>("pay\\"); }

TEST(Databases, Mysql) {
  if (!MysqlServer::Absence().empty()) GTEST_SKIP() << MysqlServer::Absence();
  OnMysqlFamily<MysqlServer>("pay\\");
}

TEST(Databases, Mysql8) {
  if (!Mysql8Server::Absence().empty()) GTEST_SKIP() << Mysql8Server::Absence();
  OnMysqlFamily<Mysql8Server>("pay\\");
}

// With partial revokes `_` is literal and must not be escaped.
TEST(Databases, MysqlWithPartialRevokes) {
  if (!MysqlServer::Absence().empty()) GTEST_SKIP() << MysqlServer::Absence();
  OnMysqlFamily<MysqlServer>("pay_limits`.*", {"partial-revokes=ON"});
}

TEST(Databases, SaysWhatIsWrong) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, std::vector<std::string>{"oracle"}}) {
    std::vector<std::string> all = {"bash", SourcePath("deploy/make-databases.sh")};
    all.insert(all.end(), words.begin(), words.end());
    ChildProcess script(all);
    EXPECT_EQ(script.Wait(), 2);
    EXPECT_THAT(script.error_output(), HasSubstr("postgres or mysql"));
  }
  SpawnOptions options;
  options.env.push_back("WEIR_DB=a; DROP DATABASE b");
  ChildProcess script({"bash", SourcePath("deploy/make-databases.sh"), "postgres"}, options);
  EXPECT_EQ(script.Wait(), 2);
  EXPECT_THAT(script.error_output(), HasSubstr("invalid name"));
}

}  // namespace
}  // namespace weir::test
