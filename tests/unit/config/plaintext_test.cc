#include "config/plaintext.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace weir::config {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Doubt(const std::string& url) { return PlaintextDoubt("store", url).value_or(""); }

TEST(PlaintextDoubt, IsAboutSqlDatabasesOnOtherMachines) {
  EXPECT_EQ(Doubt("mysql://weir:secret@db.example/weir"),
            "store: the connection to db.example is in plaintext; add tls=required to its URL, or "
            "tls=off if the network is trusted");
  EXPECT_THAT(Doubt("postgres://weir:secret@10.0.0.7:5433/weir"),
              HasSubstr("to 10.0.0.7 is not verified and may be in plaintext; add tls=required"));
  EXPECT_THAT(Doubt("mariadb://127.0.0.1,[2001:db8::7]/weir"), HasSubstr("to 2001:db8::7 is"));
  EXPECT_THAT(Doubt("postgresql:///weir?host=localhost,db2"), HasSubstr("to db2 is"));
  EXPECT_THAT(Doubt("postgres://db/weir?sslmode=prefer"), HasSubstr("to db is"));
  EXPECT_THAT(Doubt("mysql://weir:secret@db.example/weir"), Not(HasSubstr("secret")));
}

TEST(PlaintextDoubt, IsNotAboutThisMachineOrWhatWasDecided) {
  for (const char* url :
       {"memory:", "sqlite:", "redis://cache", "weir://:key@far:6380", "mysql://127.0.0.1/weir",
        "mysql://[::1]/weir", "mysql://localhost:3307/weir",
        "mysql:///weir?socket=/run/mysqld.sock", "postgres:///weir",
        "postgres:///weir?host=/run/postgresql", "postgres://localhost/weir",
        "mysql://db/weir?tls=required", "mysql://db/weir?tls=off", "mysql://db/weir?tls_ca=ca.pem",
        "postgres://db/weir?tls=insecure-no-verify", "postgres://db/weir?sslmode=verify-full",
        "postgres://db/weir?sslmode=disable"}) {
    EXPECT_EQ(Doubt(url), "") << url;
  }
}

TEST(PlaintextDoubt, KnowsWhatLibpqReadsFromTheEnvironment) {
  setenv("PGSSLMODE", "verify-full", 1);  // NOLINT(concurrency-mt-unsafe): no other thread
  EXPECT_EQ(Doubt("postgres://db/weir"), "");
  EXPECT_NE(Doubt("mysql://db/weir"), "");
  setenv("PGSSLMODE", "prefer", 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_NE(Doubt("postgres://db/weir"), "");
  unsetenv("PGSSLMODE");  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace
}  // namespace weir::config
