// A service whose database refuses the login ends; one whose database is down starts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "support/http_client.h"
#include "support/mariadb_server.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Args(const TempDir& dir, std::vector<std::string> more) {
  std::vector<std::string> args = {"serve",  "--http", "127.0.0.1:0", "--grpc",    "off",
                                   "--resp", "off",    "--data",      dir / "data"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

/// With the policies in the same database, and with those elsewhere.
void ExpectEnd(const std::string& url, const std::string& why) {
  for (const std::string policies : {"auto", "sqlite:"}) {
    for (const std::string migrate : {"true", "false"}) {
      const TempDir dir;
      WeirProcess weir(
          Args(dir, {"--store", url, "--policy-store", policies, "--store-migrate", migrate}));
      EXPECT_EQ(weir.process().Wait(20s), 1) << url << ' ' << policies;
      const std::string said = weir.process().error_output();
      const std::size_t at = said.find(why);
      EXPECT_NE(at, said.npos) << said;
      EXPECT_EQ(said.find(why, at + 1), said.npos) << said;
      EXPECT_THAT(weir.process().output(), Not(HasSubstr("listening")));
    }
  }
}

TEST(Login, OneThatIsRefusedEndsTheService) {
  {
    const PostgresServer postgres;
    ExpectEnd(postgres.url("nodb"), "database \"nodb\" does not exist");
    std::string nobody = postgres.tcp_url();
    nobody.replace(nobody.find("weir"), 4, "nobody");
    ExpectEnd(nobody, "role \"nobody\" does not exist");
  }
  {
    const MariadbServer mariadb;
    ExpectEnd(mariadb.url("nodb"), "Unknown database 'nodb'");
    std::string nobody = mariadb.tcp_url();
    nobody.replace(nobody.find("weir"), 4, "nobody");
    ExpectEnd(nobody, "Access denied for user 'nobody'");
  }
  const RedisServer redis({.password = "opensesame"});
  std::string wrong = redis.url();
  wrong.replace(wrong.find("opensesame"), 10, "notthisone");
  ExpectEnd(wrong, "WRONGPASS");
}

// Another host may admit it, now or after a failover.
TEST(Login, OneOfSeveralHostsThatRefusesItDoesNotEndTheService) {
  const PostgresServer postgres;
  std::string url = postgres.tcp_url("nodb");
  const std::string port = ":" + std::to_string(postgres.port());
  url.insert(url.find(port) + port.size(), ",127.0.0.1:1");
  const TempDir dir;
  WeirProcess weir(Args(dir, {"--store", url, "--policy-store", url}));
  EXPECT_EQ(HttpClient(weir.Port("http")).Get("/healthz").status, 200);
}

TEST(Login, TheLogSaysWhenAServiceThatListensIsReady) {
  PostgresServer postgres;
  const std::string url = postgres.tcp_url();
  postgres.Stop();
  const TempDir dir;
  WeirProcess weir(Args(dir, {"--store", url}));
  HttpClient client(weir.Port("http"));
  const auto line = weir.process().WaitForError("listening, not ready");
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, HasSubstr("why=\"the policies have not been read yet\""));
  EXPECT_THAT(client.Get("/readyz").body, HasSubstr("the policies have not been read yet"));
  EXPECT_THAT(weir.process().error_output(), Not(HasSubstr(" ready dashboard=")));
  // One line for each part, whatever it needs the server for.
  const auto times = [&weir](std::string_view text) {
    const std::string log = weir.process().error_output();
    std::size_t n = 0;
    for (std::size_t at = log.find(text); at != log.npos; at = log.find(text, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(times("the policy database is down"), 1U);
  EXPECT_EQ(times("started without the store"), 1U);
  EXPECT_EQ(times("cannot open the channel"), 1U);
  EXPECT_EQ(times("the store is not responding"), 0U);
  postgres.Start();
  EXPECT_TRUE(weir.process().WaitForError(" ready dashboard=", 20s));
  EXPECT_EQ(client.Get("/readyz").status, 200);
}

}  // namespace
}  // namespace weir::test
