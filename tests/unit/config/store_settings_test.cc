#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "config/config.h"

namespace weir::config {
namespace {

using policy::yaml::Problem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

struct Read {
  explicit Read(std::string_view text, std::vector<Override> overrides = {})
      : config(Parse(text, "weir.yaml", overrides, problems)) {}
  std::string Said() const { return ToString(problems); }

  std::vector<Problem> problems;
  Config config;
};

constexpr const char* kTwo = "stores: { main: mysql://db/weir, hot: redis://cache }\n";

TEST(StoreSettings, StoresHaveNamesAndTheFirstIsTheUsualOne) {
  const Read read(kTwo);
  ASSERT_THAT(read.problems, IsEmpty()) << read.Said();
  ASSERT_THAT(read.config.stores, SizeIs(2));
  EXPECT_EQ(read.config.stores[0].name, "main");
  EXPECT_THAT(read.config.stores[1].urls, ElementsAre("redis://cache"));
  EXPECT_EQ(read.config.store_name, "main");
  EXPECT_EQ(read.config.store, "mysql://db/weir");
}

TEST(StoreSettings, StoreNamesOneOfThem) {
  const Read read(std::string(kTwo) + "store: hot\n");
  ASSERT_THAT(read.problems, IsEmpty()) << read.Said();
  EXPECT_EQ(read.config.store, "redis://cache");
  EXPECT_EQ(read.config.store_name, "hot");
}

TEST(StoreSettings, UrlsThatNoServerCanHaveAreRefused) {
  EXPECT_THAT(Read("store: redis://127.0.0.1:notaport\n").Said(),
              HasSubstr("weir.yaml:1:8: store: invalid URL: invalid port (1 to 65535)"));
  EXPECT_THAT(Read("store: postgres://u:secret@127.0.0.1:99999/db\n").Said(),
              AllOf(HasSubstr("store: invalid URL: invalid port"), Not(HasSubstr("secret"))));
  EXPECT_THAT(Read("stores: { main: mysql://a:0/weir }\n").Said(), HasSubstr("invalid port"));
  EXPECT_THAT(Read("notify: { broker: 'kafka://a:1,b:x' }\n").Said(), HasSubstr("invalid port"));
  EXPECT_THAT(Read("store: postgres:///weir?host=/run/postgresql\n").problems, IsEmpty());
  EXPECT_THAT(Read("store: postgres://%2Frun%2Fpostgresql/weir\n").problems, IsEmpty());
}

TEST(StoreSettings, SeveralUrlsAreShards) {
  const Read read("stores: { wide: [mysql://a/weir, mysql://b/weir] }\n");
  ASSERT_THAT(read.problems, IsEmpty()) << read.Said();
  EXPECT_THAT(read.config.stores[0].urls, ElementsAre("mysql://a/weir", "mysql://b/weir"));
}

TEST(StoreSettings, FlagsTellHostsFromStores) {
  const Read read(
      "", {{"stores",
            "main=mysql://u:p@a,b:3307/weir,hot=redis+cluster://x,y,main=memory:", "--stores"}});
  ASSERT_THAT(read.problems, IsEmpty()) << read.Said();
  ASSERT_THAT(read.config.stores, SizeIs(2));
  EXPECT_THAT(read.config.stores[0].urls, ElementsAre("mysql://u:p@a,b:3307/weir", "memory:"));
  EXPECT_THAT(read.config.stores[1].urls, ElementsAre("redis+cluster://x,y"));
}

TEST(StoreSettings, AMoveHasShares) {
  const Read read(
      std::string(kTwo) +
      "move: { from: main, to: hot, share: 12.5%, done: 0.25, policies: [api/login] }\n");
  ASSERT_THAT(read.problems, IsEmpty()) << read.Said();
  EXPECT_EQ(read.config.move.share, 1'250U);
  EXPECT_EQ(read.config.move.done, 25U);
  EXPECT_THAT(read.config.move.policies, ElementsAre("api/login"));
}

TEST(StoreSettings, ARegionLendsForATerm) {
  const Read read("store: weirs://:secret@home\nregion: { term: 2s, lends: true }\n");
  ASSERT_THAT(read.problems, IsEmpty()) << read.Said();
  EXPECT_EQ(read.config.region.term, std::chrono::seconds(2));
  EXPECT_TRUE(read.config.region.lends);
  EXPECT_EQ(Read("region: { term: off }\n").config.region.term.count(), 0);
}

TEST(StoreSettings, SaysWhatIsWrong) {
  struct Case {
    std::string text;
    const char* said;
  };
  const Case cases[] = {
      {"store: hot\n", "there is no store 'hot'"},
      {std::string(kTwo) + "store: cold\n", "unknown store 'cold'; stores has main, hot"},
      {std::string(kTwo) + "store: redis://c\n", "must be one of `stores`: main, hot"},
      {"stores: { main: oracle://x }\n", "main: expected a URL that begins with one of"},
      {"stores: { \"two words\": redis://x }\n", "expected NAME=URL"},
      {std::string(kTwo) + "move: { from: main, to: cold }\n", "move.to: unknown store 'cold'"},
      {std::string(kTwo) + "move: { from: hot, to: hot }\n", "move.to: must differ"},
      {std::string(kTwo) + "move: { from: main, to: hot, share: 5, done: 6 }\n",
       "move.done: cannot exceed move.share"},
      {std::string(kTwo) + "move: { from: main, to: hot, share: 101 }\n",
       "move.share: expected a percentage from 0 to 100"},
      {std::string(kTwo) + "move: { share: 5 }\n", "move.share: requires move.from and move.to"},
      {"store: redis://c\nregion: { lends: true }\n", "region.lends: requires region.term"},
      {"region: { lends: true, term: 2s }\n", "region.lends: requires the home store"},
      {std::string(kTwo) + "region: { term: 2s }\n",
       "region.term: cannot be used with several stores"},
      {"region: { term: 2m }\n", "expected a time from 40ms to 1m, or off"},
      {"region: { term: 39ms }\n", "expected a time from 40ms to 1m, or off"},
  };
  for (const Case& one : cases) EXPECT_THAT(Read(one.text).Said(), HasSubstr(one.said));
  EXPECT_THAT(Read("stores: { main: oracle://me:hunter2@db }").Said(), Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace weir::config
