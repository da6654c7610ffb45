#include "drivers/postgres/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace weir::postgres {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string ValueOf(const Target& target, const char* name) {
  const Target::Words words = target.words();
  for (std::size_t i = 0; words.names[i] != nullptr; ++i) {
    if (std::strcmp(words.names[i], name) == 0) return words.values[i];
  }
  return "";
}

std::string ModeOf(const std::string& options) {
  const Result<Target> target = Target::Parse("postgres://u@h/d" + options);
  return target.ok() ? ValueOf(*target, "sslmode") : "error: " + target.error().message;
}

TEST(PostgresUrl, TlsIsVerifiedUnlessItIsCalledInsecure) {
  EXPECT_EQ(ModeOf(""), "");
  EXPECT_EQ(ModeOf("?tls=off"), "disable");
  EXPECT_EQ(ModeOf("?tls=required&tls_ca=/ca.pem"), "verify-full");
  EXPECT_EQ(ModeOf("?tls_ca=/ca.pem"), "verify-full");
  EXPECT_EQ(ModeOf("?tls=insecure-no-verify"), "require");
  EXPECT_EQ(ModeOf("?sslmode=verify-ca"), "verify-ca");
  EXPECT_THAT(ModeOf("?sslmode=require"), HasSubstr("error: "));
  EXPECT_THAT(ModeOf("?sslmode=require"), HasSubstr("tls=required"));
  EXPECT_THAT(ModeOf("?sslmode=disable&tls=required"), HasSubstr("error: "));
  EXPECT_THAT(ModeOf("?tls=maybe"), HasSubstr("error: "));
  EXPECT_THAT(ModeOf("?tls="), HasSubstr("error: "));
  EXPECT_THAT(ModeOf("?tls_cert=/c"), HasSubstr("error: "));
}

TEST(PostgresUrl, KeepsLibpqsOwnOptions) {
  const Target target =
      *Target::Parse("postgres://u:p%40@h/d?tls_ca=%2Fa%20b&application_name=me&connect_timeout=3");
  EXPECT_EQ(ValueOf(target, "sslrootcert"), "/a b");
  EXPECT_EQ(ValueOf(target, "application_name"), "me");
  EXPECT_EQ(ValueOf(target, "connect_timeout"), "3");
  EXPECT_EQ(ValueOf(target, "password"), "p@");
  EXPECT_EQ(ValueOf(target, "dbname"), "d");
}

TEST(PostgresUrl, OfSeveralHostsTheOneThatTakesWritesIsWanted) {
  Target target = *Target::Parse("postgres://u@a:1,b:2,c:3/d");
  EXPECT_EQ(ValueOf(target, "target_session_attrs"), "read-write");
  EXPECT_THAT(target.names(), ElementsAre("a", "b", "c"));
  target.Rotate();
  EXPECT_EQ(ValueOf(target, "host"), "b,c,a");
  EXPECT_EQ(ValueOf(target, "port"), "2,3,1");
  EXPECT_EQ(ValueOf(*Target::Parse("postgres://u@a/d"), "target_session_attrs"), "");
  EXPECT_EQ(ValueOf(*Target::Parse("postgres://u@a,b/d?target_session_attrs=any"),
                    "target_session_attrs"),
            "any");
  EXPECT_THAT(Target::Parse("postgres://u@/d?host=/run/pg")->names(), IsEmpty());
}

TEST(PostgresUrl, EachHostIsATargetOfItsOwn) {
  const Target target = *Target::Parse("postgres://u@a:1,b:2/d");
  EXPECT_TRUE(target.wants_primary());
  const std::vector<Target> hosts = target.Hosts();
  ASSERT_EQ(hosts.size(), 2U);
  EXPECT_EQ(ValueOf(hosts[0], "host") + ":" + ValueOf(hosts[0], "port"), "a:1");
  EXPECT_EQ(ValueOf(hosts[1], "host") + ":" + ValueOf(hosts[1], "port"), "b:2");
  EXPECT_EQ(ValueOf(hosts[1], "dbname"), "d");
  // A single port applies to all hosts.
  EXPECT_EQ(ValueOf(Target::Parse("postgres:///d?host=a,b&port=7")->Hosts()[1], "port"), "7");
  EXPECT_FALSE(Target::Parse("postgres://u@a/d")->wants_primary());
  EXPECT_FALSE(Target::Parse("postgres://u@a,b/d?target_session_attrs=any")->wants_primary());
}

TEST(PostgresUrl, MessagesKeepSecrets) {
  for (const char* url : {"postgres://u:hidden%4@h/d", "postgres://u:hidden@h:x/d?what=1"}) {
    const Result<Target> target = Target::Parse(url);
    ASSERT_FALSE(target.ok()) << url;
    EXPECT_EQ(target.error().code, Code::kInvalidArgument);
    EXPECT_THAT(target.error().message, Not(HasSubstr("hidden")));
  }
}

}  // namespace
}  // namespace weir::postgres
