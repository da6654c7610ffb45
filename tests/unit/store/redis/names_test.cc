#include "store/redis/names.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>

namespace weir::store::redis {
namespace {

std::string NameOf(const Names& names, std::string_view key, Algorithm algorithm) {
  std::string out;
  names.Append(key, algorithm, out);
  return out;
}

TEST(RedisNames, AServersNamesAreThoseOfTheKeys) {
  const Names names("weir:", false, "");
  EXPECT_EQ(NameOf(names, "api/p|user:1", Algorithm::kTokenBucket), "weir:api/p|user:1t");
  EXPECT_EQ(NameOf(names, "api/p|user:1", Algorithm::kConcurrency), "weir:api/p|user:1n");
}

TEST(RedisNames, AClustersNamesCarryATag) {
  const Names names("weir:", true, "");
  EXPECT_EQ(NameOf(names, "api/p|user:1", Algorithm::kFixedWindow), "weir:{tapi}api/p|user:1f");
  EXPECT_EQ(NameOf(names, "", Algorithm::kFixedWindow), "weir:{t}f");
}

TEST(RedisNames, ATagIsTheDomain) {
  const Names names("", true, "");
  EXPECT_EQ(names.Tag("api/p|user:1"), names.Tag("api/q|route:/x|user:2"));
  EXPECT_NE(names.Tag("api/p|user:1"), names.Tag("web/p|user:1"));
  EXPECT_EQ(names.Tag("key|a"), names.Tag("key|b"));
  EXPECT_EQ(names.Tag("a"), names.Tag("b"));
}

TEST(RedisNames, PlacesSpreadKeysThatAreNeverChargedTogether) {
  const auto places = std::make_shared<const KeyPlaces>(KeyPlaces{{"api/p", {.entries = {"user"}}},
                                                                  {"api/q", {.entries = {"user"}}},
                                                                  {"api/each", {.whole = true}}});
  const Names names("", true, "", places);
  EXPECT_EQ(names.Tag("api/p|user:1"), names.Tag("api/q|route:/x|user:1"));
  EXPECT_EQ(names.Tag("api/unknown|user:1"), names.Tag("api/everybody"));
  for (const std::string head :
       {"api/p|user:", "api/each|user:", "key|", "api/%override60|user:"}) {
    std::map<std::string, int> tags;
    for (int i = 0; i < 6400; ++i) ++tags[names.Tag(head + std::to_string(i))];
    EXPECT_EQ(tags.size(), 12U) << head;
    for (const auto& [tag, keys] : tags) EXPECT_LT(keys, 900) << head;
  }
  EXPECT_EQ(names.Tag("key|a|%reserved:0f"), names.Tag("key|a"));
  EXPECT_EQ(names.Tag("api/p|user:1|%reserved:0f"), names.Tag("api/p|user:1"));
}

TEST(RedisNames, ATagMayTakeTheValueOfAnEntry) {
  const Names names("", true, "user");
  EXPECT_EQ(names.Tag("api/p|user:1"), names.Tag("api/q|route:/x|user:1"));
  EXPECT_NE(names.Tag("api/p|user:1"), names.Tag("api/p|user:2"));
  EXPECT_NE(names.Tag("api/p|user:1"), names.Tag("web/p|user:1"));
  // Only the entry with exactly that name.
  EXPECT_EQ(names.Tag("api/p|superuser:1"), names.Tag("api/p|superuser:2"));
}

TEST(RedisNames, AKeyMayNameItsTag) {
  const Names names("", true, "");
  EXPECT_EQ(names.Tag("{g}a"), names.Tag("{g}b"));
  EXPECT_NE(names.Tag("{g}a"), names.Tag("{h}a"));
}

TEST(RedisNames, ThrottleKeysSpreadByThemselves) {
  const Names names("", true, "");
  EXPECT_NE(names.Tag("cl|a"), names.Tag("cl|b"));
}

TEST(RedisNames, BracesInATagCannotEndIt) {
  const Names names("", true, "user");
  EXPECT_EQ(names.Tag("api/p|user:}x{").find_first_of("{}"), std::string::npos);
  std::set<std::string> tags;
  for (const char* value : {"{", "}", "\\7b", "\\", "7b"}) {
    tags.insert(names.Tag(std::string("api/p|user:") + value));
  }
  EXPECT_EQ(tags.size(), 5U);
}

TEST(RedisNames, AreReadBack) {
  for (const bool tagged : {false, true}) {
    const Names names("weir:", tagged, "");
    for (const char* key : {"api/p|user:1", "key|{}", "{t}x", "a}b", "key|}"}) {
      for (const Algorithm algorithm :
           {Algorithm::kTokenBucket, Algorithm::kFixedWindow, Algorithm::kSlidingLog,
            Algorithm::kSlidingCounter, Algorithm::kConcurrency, Algorithm::kAnchoredWindow}) {
        const std::string name = NameOf(names, key, algorithm);
        EXPECT_EQ(names.Parse(name), (HeldKey{key, algorithm})) << name;
        EXPECT_FALSE(names.Parse(name + "e")) << name;  // the entries of a log
      }
    }
  }
  EXPECT_FALSE(Names("weir:", false, "").Parse("other:at"));
  EXPECT_FALSE(Names("weir:", false, "").Parse("weir:t"));
  EXPECT_FALSE(Names("weir:", true, "").Parse("weir:at"));
  EXPECT_FALSE(Names("weir:", true, "").Parse("weir:{at"));
}

}  // namespace
}  // namespace weir::store::redis
