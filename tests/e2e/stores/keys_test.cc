// GET /admin/metrics lists the keys of any kind of store.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "e2e/stores/nodes.h"
#include "support/and_mysql.h"
#include "support/http_client.h"
#include "support/stopwatch.h"
#include "support/store_server.h"
#include "support/wait.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPolicies = R"(
policies:
  - { name: p, match: { user: "*" }, quota: { fixed_window: { limit: 3, window: 100d } } }
  - { name: brief, match: { brief: "*" }, quota: { fixed_window: { limit: 3, window: 1s } } }
)";

/// A store and a process on it, for all tests of one kind of store.
struct World {
  explicit World(const std::string& kind)
      : server(kind == "memory" ? nullptr : StoreServer::Make(kind)),
        nodes(1, server == nullptr ? "memory:" : server->url(), kPolicies,
              {"--store-timeout", "2s", "--threads", "1"}) {}

  std::unique_ptr<StoreServer> server;
  Nodes nodes;
};

class KeysTest : public ::testing::TestWithParam<std::string> {
 protected:
  static void TearDownTestSuite() { worlds_.clear(); }
  static World& Get(const std::string& kind) {
    std::unique_ptr<World>& world = worlds_[kind];
    if (world == nullptr) world = std::make_unique<World>(kind);
    return *world;
  }

  void Take(const std::string& entry, const std::string& value) {
    const HttpResponse taken =
        client_.Post("/v1/check", R"({"descriptors":[{")" + entry + R"(":")" + value + "\"}]}");
    ASSERT_THAT(taken.body, HasSubstr("\"allowed\":true"));
    ASSERT_THAT(taken.body, Not(HasSubstr("\"degraded\":true")));
  }

  /// All buckets of the list, page by page.
  std::set<std::string> List(const std::string& query) {
    std::set<std::string> buckets;
    std::string cursor;
    do {
      const HttpResponse page = client_.Get("/admin/metrics?" + query + "&cursor=" + cursor);
      EXPECT_EQ(page.status, 200) << page.body;
      constexpr std::string_view kBucket = "{\"bucket\":\"";
      for (std::size_t at = page.body.find(kBucket); at != std::string::npos;
           at = page.body.find(kBucket, at + 1)) {
        const std::size_t begin = at + kBucket.size();
        buckets.insert(page.body.substr(begin, page.body.find('"', begin) - begin));
      }
      ++pages_;
      cursor = Escaped(std::string(page.Header("X-Next-Cursor")));
    } while (!cursor.empty());
    return buckets;
  }

  static std::string Escaped(std::string text) {
    for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|')) {
      text.replace(at, 1, "%7C");
    }
    return text;
  }

  static inline std::map<std::string, std::unique_ptr<World>> worlds_;
  const std::unique_ptr<StoreServer>& server_ = Get(GetParam()).server;
  const std::uint16_t port_ = Get(GetParam()).nodes.ports()[0];
  HttpClient client_{port_};
  int pages_ = 0;
};

class DistantKeysTest : public KeysTest {};
class SqlKeysTest : public KeysTest {};

INSTANTIATE_TEST_SUITE_P(Stores, KeysTest,
                         ::testing::ValuesIn(AndMysql({"memory", "redis", "redis_cluster",
                                                       "postgres", "mariadb"})),
                         [](const auto& store) { return store.param; });

INSTANTIATE_TEST_SUITE_P(Stores, DistantKeysTest,
                         ::testing::ValuesIn(AndMysql({"redis", "redis_cluster", "postgres",
                                                       "mariadb"})),
                         [](const auto& store) { return store.param; });
INSTANTIATE_TEST_SUITE_P(Stores, SqlKeysTest,
                         ::testing::ValuesIn(AndMysql({"postgres", "mariadb"})),
                         [](const auto& store) { return store.param; });

TEST_P(KeysTest, AreListedPageByPageWithWhatIsUsed) {
  std::set<std::string> users;
  for (int i = 10; i < 35; ++i) {
    Take("user", "u" + std::to_string(i));
    users.insert("default/p|user:u" + std::to_string(i));
  }
  EXPECT_EQ(List("limit=10&prefix=default/p"), users);
  // 25 in pages of 10; but a reply of Redis to SCAN may have more keys than requested.
  EXPECT_GE(pages_, GetParam().starts_with("redis") ? 2 : 3);
  std::set<std::string> some;
  for (int i = 20; i < 30; ++i) some.insert("default/p|user:u" + std::to_string(i));
  EXPECT_EQ(List("limit=1000&prefix=default/p%7Cuser:u2"), some);
  EXPECT_EQ(List("limit=1000&prefix=default/p%7Cuser:u[23]"), std::set<std::string>());
  EXPECT_THAT(
      client_.Get("/admin/metrics?limit=1000&prefix=default/p%7Cuser:u12").body,
      HasSubstr(
          R"("algorithm":"FIXED_WINDOW","currentTokens":2,"capacity":3,"windowRequestCount":1,"policy":"p")"));
  if (server_ != nullptr) {
    EXPECT_EQ(client_.Get("/admin/metrics?cursor=nonsense").status, 400);
  }
}

TEST_P(SqlKeysTest, ThatHaveExpiredAreNotListed) {
  Take("user", "stays");
  Take("brief", "goes");
  // Rows are swept a minute later, but do not count.
  EXPECT_TRUE(WaitUntil([&] { return List("limit=100&prefix=default/brief").empty(); }));
  EXPECT_EQ(List("limit=100&prefix=default/p%7Cuser:stays").size(), 1U);
}

TEST_P(DistantKeysTest, AStoreThatHangsHoldsNobodyUp) {
  Take("user", "u");
  server_->Pause();
  const Stopwatch watch;
  HttpClient other(port_);
  client_.SendRaw("GET /admin/metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_EQ(other.Get("/healthz").status, 200);
  EXPECT_LT(watch.elapsed(), 900ms);  // the only reactor keeps working
  const HttpResponse refused = client_.ReadResponse("GET");
  EXPECT_EQ(refused.status, 503) << refused.body;
  EXPECT_LT(watch.elapsed(), 6s);
  server_->Resume();
  EXPECT_TRUE(WaitUntil([&] { return client_.Get("/admin/metrics").status == 200; }));
}

}  // namespace
}  // namespace weir::test
