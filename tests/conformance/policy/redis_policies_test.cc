// Faults that only policies in Redis have: a server that loses its data, and one that is down.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "admin/policy_changes.h"
#include "admin/redis/policy_store.h"
#include "admin/sqlite/policy_memory.h"
#include "conformance/policy/policy_node.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace weir::policy {
namespace {

using test::WaitUntil;
using ::testing::HasSubstr;

/// A node on a separate server.
struct Node {
  explicit Node(const std::string& url, std::chrono::milliseconds poll = shared::Options().poll) {
    shared::Options options;
    options.poll = poll;
    options.patience = std::chrono::milliseconds(1000);
    auto opened = redis::Open(url, catalog, std::move(options));
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    store = std::move(*opened);
  }
  Result<StoredPolicy> Create(const std::string& key, std::int64_t capacity, Nanos end = 0) {
    return PolicyNode::Await<StoredPolicy>(
        [&](auto done) { store->Create(Sample(key, capacity, end), "me", done); });
  }
  Result<StoredPolicy> Update(const std::string& key, std::int64_t capacity, Nanos end) {
    return PolicyNode::Await<StoredPolicy>(
        [&](auto done) { store->Update(Sample(key, capacity, end), "me", done); });
  }
  std::int64_t Limit(const std::string& key) const {
    return catalog.live().Current()->ForKey(key).quota()->limit();
  }

  Catalog catalog{CompileOptions{DefaultPolicy(), 0.1}};
  std::unique_ptr<PolicyStore> store;
};

/// Ends expired exceptions until `ended()`. Retries as the service does: an attempt is abandoned
/// if the server is slow.
template <typename Condition>
bool EndUntil(admin::PolicyChanges& changes, Nanos now, Condition ended) {
  return WaitUntil([&] {
    changes.EndExpired(now);
    now += Nanos{5} * 1'000'000'000;
    return WaitUntil(ended, std::chrono::seconds(2));
  });
}

TEST(RedisPolicies, AServerThatForgotIsToldByANodeThatKnows) {
  test::RedisServer server;
  Node a(server.url());
  Node b(server.url());
  for (int i = 0; i < 1200; ++i) {  // more than one page
    ASSERT_TRUE(a.Create("k" + std::to_string(i), i + 1).ok());
  }
  ASSERT_TRUE(WaitUntil([&] { return b.Limit("k1199") == 1200; }));
  server.Kill();  // nothing is on disk
  server.Start();
  // The policies in force stay so throughout, and a new node learns them.
  const auto changes = [&] {
    return server.Command({"HGET", "weir:{weir-policies}:state", "changes"});
  };
  // More changes than any node has seen.
  ASSERT_TRUE(WaitUntil([&] { return std::atoi(changes().c_str()) > 1200; })) << changes();
  EXPECT_EQ(a.Limit("k7"), 8);
  EXPECT_EQ(b.Limit("k7"), 8);
  const Node fresh(server.url());
  EXPECT_EQ(fresh.Limit("k1199"), 1200);
  EXPECT_EQ(fresh.store->List("", 1).total, 1200U);
  // From there every node continues.
  ASSERT_TRUE(WaitUntil([&] { return b.Create("after", 5).ok(); }));
  EXPECT_TRUE(WaitUntil([&] { return a.Limit("after") == 5; }));
}

/// So long that a node polls only when it is asked to change something.
constexpr std::chrono::milliseconds kSeldom = std::chrono::hours(1);

TEST(RedisPolicies, AChangeToAServerThatForgotDoesNotTakeThePlaceOfAllOthers) {
  const test::RedisServer server;
  Node a(server.url(), kSeldom);
  ASSERT_TRUE(a.Create("k", 7).ok());
  server.Command({"FLUSHALL"});
  const Result<StoredPolicy> early = a.Create("other", 8);
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().code, Code::kUnavailable);
  EXPECT_EQ(a.Limit("k"), 7);
  EXPECT_TRUE(WaitUntil([&] { return a.Create("other", 8).ok(); }));
  EXPECT_EQ(a.Limit("k"), 7);
  const Node fresh(server.url());
  EXPECT_EQ(fresh.Limit("k"), 7);
  EXPECT_EQ(fresh.Limit("other"), 8);
}

// No running node has ever reached the server: they were restarted as well.
TEST(RedisPolicies, ANodeThatStartedWithoutTheServerTellsItWhatItRemembers) {
  test::RedisServer server;
  const test::TempDir folder;
  const auto start = [&](Catalog& catalog, bool required) {
    shared::Options options;
    options.required = required;
    options.memory =
        std::move(*sqlite::PolicyMemory::Open((folder / "policies.db").string(), "here"));
    auto opened = redis::Open(server.url(), catalog, std::move(options));
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return std::move(*opened);
  };
  {
    Catalog catalog{CompileOptions{DefaultPolicy(), 0.1}};
    const auto store = start(catalog, true);
    const auto made = PolicyNode::Await<StoredPolicy>(
        [&](auto done) { store->Create(Sample("k", 7), "me", done); });
    ASSERT_TRUE(made.ok());
  }
  server.Kill();  // nothing is on disk
  Catalog catalog{CompileOptions{DefaultPolicy(), 0.1}};
  const auto store = start(catalog, false);
  const auto limit = [&] { return catalog.live().Current()->ForKey("k").quota()->limit(); };
  EXPECT_EQ(limit(), 7);
  server.Start();
  ASSERT_TRUE(WaitUntil([&] { return store->health().up; }));
  EXPECT_EQ(limit(), 7);
  const Node fresh(server.url());
  EXPECT_EQ(fresh.Limit("k"), 7);
}

// The node that restores the policies has not seen the latest change.
TEST(RedisPolicies, AfterTheServerForgotAllNodesHaveTheSamePolicies) {
  const test::RedisServer server;
  Node a(server.url(), kSeldom);
  ASSERT_TRUE(a.Create("k", 6).ok());
  Node b(server.url(), kSeldom);
  ASSERT_TRUE(b.Create("late", 7).ok());
  server.Command({"FLUSHALL"});
  ASSERT_FALSE(a.Create("x", 8).ok());
  // Before it answers this it reads again, and restores what it knows.
  const auto read = PolicyNode::Await<std::vector<PolicyChange>>(
      [&](auto done) { a.store->History("k", 1, done); });
  ASSERT_TRUE(read.ok());
  ASSERT_TRUE(WaitUntil([&] { return b.Create("y", 9).ok(); }));
  const Node fresh(server.url());
  for (const char* key : {"k", "late", "y"}) EXPECT_EQ(b.Limit(key), fresh.Limit(key)) << key;
}

// The history is lost with the server, and with it the policies that exceptions replaced.
TEST(RedisPolicies, AnExceptionDoesNotEndWithoutALimitAfterTheServerForgot) {
  test::RedisServer server;
  Node node(server.url());
  admin::PolicyChanges changes(*node.store, node.catalog);
  const Nanos end = SystemClock::Get().Now() + Nanos{3600} * 1'000'000'000;
  ASSERT_TRUE(node.Create("later", 7).ok());
  ASSERT_TRUE(node.Create("raised", 7).ok());
  ASSERT_TRUE(node.Update("raised", 70, end).ok());
  ASSERT_TRUE(node.Create("brief", 5, end).ok());
  server.Kill();  // nothing is on disk
  server.Start();
  ASSERT_TRUE(WaitUntil([&] { return node.Update("later", 70, end).ok(); }));
  // The policy before is known from the change itself; one that began as an exception is removed.
  EXPECT_TRUE(EndUntil(changes, end, [&] {
    return node.Limit("later") == 7 && !node.store->Get("brief").ok();
  })) << node.Limit("later");
  EXPECT_EQ(node.Limit("raised"), 70);
  // An operator can set the policy instead.
  ASSERT_TRUE(node.Update("raised", 8, 0).ok());
  EXPECT_EQ(node.Limit("raised"), 8);
}

TEST(RedisPolicies, AnExceptionEndsWhileTheServerIsAway) {
  test::RedisServer server({.durable = true});
  Node node(server.url());
  admin::PolicyChanges changes(*node.store, node.catalog);
  const Nanos end = SystemClock::Get().Now() + Nanos{3600} * 1'000'000'000;
  ASSERT_TRUE(node.Create("raised", 7).ok());
  ASSERT_TRUE(node.Update("raised", 70, end).ok());
  ASSERT_TRUE(node.Create("brief", 5, end).ok());
  changes.EndExpired(end - 1);
  ASSERT_TRUE(node.Create("k", 1).ok());  // answered after all earlier requests
  server.Kill();
  changes.EndExpired(end);
  EXPECT_TRUE(WaitUntil([&] { return node.Limit("raised") == 7; })) << node.Limit("raised");
  EXPECT_TRUE(WaitUntil([&] { return node.Limit("brief") == 100; })) << node.Limit("brief");
  EXPECT_EQ(node.store->Get("raised")->capacity, 70) << "that is what is stored";

  // The exception does not return for a moment along with the server.
  server.Start();
  bool never = true;
  EXPECT_TRUE(WaitUntil([&] {
    never = never && node.Limit("raised") == 7;
    return node.store->health().up;
  }));
  EXPECT_EQ(node.Limit("raised"), 7);
  EXPECT_TRUE(never);
  EXPECT_TRUE(EndUntil(changes, end + Nanos{5} * 1'000'000'000, [&] {
    return node.store->Get("raised")->capacity == 7 && !node.store->Get("brief").ok();
  }));
  // From then on, the stored policy applies.
  ASSERT_TRUE(node.Update("raised", 71, 0).ok());
  EXPECT_EQ(node.Limit("raised"), 71);
}

TEST(RedisPolicies, AnExceptionEndsAlthoughTheServerForgotWhatItReplaced) {
  test::RedisServer server;
  Node node(server.url());
  admin::PolicyChanges changes(*node.store, node.catalog);
  const Nanos end = SystemClock::Get().Now() + Nanos{3600} * 1'000'000'000;
  ASSERT_TRUE(node.Create("raised", 7).ok());
  ASSERT_TRUE(node.Update("raised", 70, end).ok());
  changes.EndExpired(end - 1);
  ASSERT_TRUE(node.Create("k", 1).ok());  // answered after all earlier requests
  server.Kill();                          // nothing is on disk
  server.Start();
  ASSERT_TRUE(WaitUntil([&] { return node.Update("k", 2, 0).ok(); }));
  EXPECT_TRUE(EndUntil(changes, end, [&] { return node.Limit("raised") == 7; }))
      << node.Limit("raised");
}

TEST(RedisPolicies, WhileTheServerIsAwayThePoliciesStayAndChangesAreRefused) {
  test::RedisServer server({.durable = true});
  Node node(server.url());
  ASSERT_TRUE(node.Create("k", 7).ok());
  server.Kill();
  const Result<StoredPolicy> refused = node.Create("other", 8);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("is down"));
  EXPECT_EQ(node.Limit("k"), 7);
  server.Start();
  EXPECT_TRUE(WaitUntil([&] { return node.Create("other", 8).ok(); }));
  EXPECT_EQ(node.Limit("other"), 8);
}

TEST(RedisPolicies, AStateOfANewerVersionIsLeftAlone) {
  const test::RedisServer server;
  server.Command({"HSET", "weir:{weir-policies}:state", "changes", "1", "format", "2"});
  Catalog catalog{CompileOptions{DefaultPolicy(), 0.1}};
  const auto opened = redis::Open(server.url(), catalog, {});
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message, HasSubstr("newer version"));
}

TEST(RedisPolicies, ADamagedRecordIsAnErrorAndNotAPolicy) {
  const test::RedisServer server;
  server.Command({"HSET", "weir:{weir-policies}:state", "changes", "1"});
  server.Command({"HSET", "weir:{weir-policies}:policies", "k", "3:abc,9999:x,"});
  Catalog catalog{CompileOptions{DefaultPolicy(), 0.1}};
  const auto opened = redis::Open(server.url(), catalog, {});
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message, HasSubstr("damaged"));
}

}  // namespace
}  // namespace weir::policy
