#include "drivers/postgres/sqlstate.h"

#include <gtest/gtest.h>

#include "drivers/postgres/url.h"

namespace weir::postgres {
namespace {

TEST(ReadConnectError, TakesTheStateOutOfARefusal) {
  const ConnectError error = ReadConnectError(
      "connection to server at \"127.0.0.1\", port 5432 failed: FATAL:  28P01: password "
      "authentication failed for user \"me\"\nLOCATION:  auth_failed, auth.c:326\n");
  EXPECT_EQ(error.sqlstate, "28P01");
  EXPECT_EQ(error.message,
            "connection to server at \"127.0.0.1\", port 5432 failed: FATAL:  password "
            "authentication failed for user \"me\"");
}

TEST(ReadConnectError, LeavesEverythingElseAsItIs) {
  EXPECT_EQ(ReadConnectError("").message, "");
  for (const char* text :
       {"could not translate host name \"x\"", "a:  28P0", "a:  28P01", "a:  28p01: b"}) {
    EXPECT_EQ(ReadConnectError(text).message, text);
    EXPECT_EQ(ReadConnectError(text).sqlstate, "");
  }
}

TEST(ReadConnectError, JoinsTheLines) {
  EXPECT_EQ(ReadConnectError("one failed: no\n\tIs the server running?\ntwo failed: no\n").message,
            "one failed: no; Is the server running?; two failed: no");
}

TEST(OneLine, JoinsTheLines) {
  EXPECT_EQ(OneLine(nullptr), "");
  EXPECT_EQ(OneLine("FATAL:  no\n"), "FATAL:  no");
  EXPECT_EQ(OneLine("connection refused\n\tIs the server running?\n\n"),
            "connection refused; Is the server running?");
}

std::vector<std::string> HostsOf(const std::string& url) {
  const Result<Target> target = Target::Parse(url);
  return target.ok() ? target->names() : std::vector<std::string>();
}

TEST(HostsOf, AreThoseWithNames) {
  using Hosts = std::vector<std::string>;
  EXPECT_EQ(HostsOf("postgres://me:secret@db.example:5433/limits"), Hosts{"db.example"});
  EXPECT_EQ(HostsOf("postgres://one,two:5433/limits"), (Hosts{"one", "two"}));
  EXPECT_EQ(HostsOf("host=one,/run/postgresql dbname=limits"), Hosts{"one"});
  EXPECT_EQ(HostsOf("postgres://me@%2Ftmp/limits"), Hosts{});
  EXPECT_EQ(HostsOf("host=one hostaddr=127.0.0.1"), Hosts{});
  EXPECT_EQ(HostsOf("postgres://[broken"), Hosts{});
}

}  // namespace
}  // namespace weir::postgres
