#include "protocol/http/query.h"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

std::string WhyNot(std::string_view query, Query::Names names) {
  const Result<Query> read = Query::Read(query, names);
  return read.ok() ? "" : read.error().message;
}

TEST(Query, FindsValues) {
  const Result<Query> query = Query::Read("&&a==&b=x%20y+z&%66lag", {"a", "b", "c", "flag"});
  ASSERT_TRUE(query.ok());
  EXPECT_EQ(query->Find("a"), "=");
  EXPECT_EQ(query->Find("b"), "x y z");
  EXPECT_EQ(query->Find("c"), std::nullopt);
  EXPECT_EQ(query->Find("flag"), "");
  EXPECT_TRUE(Query::Read("", {}).ok());
}

TEST(Query, RefusesAParameterThatNobodyReads) {
  EXPECT_EQ(WhyNot("limit=3&verson=3", {"limit", "version"}),
            "query: unknown parameter 'verson'; did you mean version?");
  EXPECT_EQ(WhyNot("dryrun", {}), "query: unknown parameter 'dryrun'");
  EXPECT_EQ(WhyNot("%zz=1", {"limit"}), "query: unknown parameter '%zz'");
}

TEST(Query, AValueThatDoesNotDecodeIsNotAbsent) {
  for (const char* query : {"version=3%0A", "version=3%", "version=%zz", "version=%ff"}) {
    EXPECT_EQ(WhyNot(query, {"version"}),
              "query: the value of 'version' must be percent-encoded UTF-8 without control "
              "characters")
        << query;
    EXPECT_FALSE(Query::ReadKnown(query, {"version"}).ok()) << query;
  }
}

TEST(Query, RefusesAParameterThatIsGivenTwice) {
  EXPECT_EQ(WhyNot("version=7&version=3", {"version"}), "query: 'version' is given twice");
  EXPECT_EQ(WhyNot("version=7&%76ersion=7", {"version"}), "query: 'version' is given twice");
  EXPECT_FALSE(Query::ReadKnown("a=1&b=2&a=1", {"a"}).ok());
}

TEST(Query, OthersMayBeIgnored) {
  const Result<Query> query = Query::ReadKnown("x=%&x=1&%zz=1&a=1", {"a"});
  ASSERT_TRUE(query.ok());
  EXPECT_EQ(query->Find("a"), "1");
  EXPECT_EQ(query->Find("x"), std::nullopt);
}

TEST(Query, ReadsNumbers) {
  const Result<Query> query = Query::Read("a=5&b=x&c=", {"a", "b", "c"});
  ASSERT_TRUE(query.ok());
  EXPECT_EQ(query->Number("a", 1, 5, 3).value(), 5);
  EXPECT_EQ(query->Number("d", 1, 5, 3).value(), 3);
  EXPECT_EQ(query->Number("a", 1, 4, 3).error().message, "a must be a whole number from 1 to 4");
  EXPECT_FALSE(query->Number("b", 1, 5, 3).ok());
  EXPECT_FALSE(query->Number("c", 1, 5, 3).ok());
}

TEST(Query, ARepetitionIsSeenInItsPlace) {
  const std::string_view text = "a=1&b=1&a=2";
  QueryReader reader(text);
  EXPECT_FALSE(IsRepeated(text, *reader.Next()));
  EXPECT_FALSE(IsRepeated(text, *reader.Next()));
  EXPECT_TRUE(IsRepeated(text, *reader.Next()));
}

}  // namespace
}  // namespace weir::http
