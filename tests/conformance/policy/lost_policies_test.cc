// A Redis that lost its policies and was then changed by a node that never had them.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admin/redis/policy_store.h"
#include "admin/sqlite/policy_memory.h"
#include "conformance/policy/policy_node.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace weir::policy {
namespace {

using test::WaitUntil;

constexpr const char* kState = "weir:{weir-policies}:state";

/// A node that reads from the server only when it starts and when a test makes it.
class Node {
 public:
  explicit Node(const std::string& url, std::unique_ptr<shared::Memory> memory = nullptr) {
    shared::Options options;
    options.poll = std::chrono::hours(1);
    options.patience = std::chrono::milliseconds(1000);
    options.memory = std::move(memory);
    auto opened = redis::Open(url, catalog_, std::move(options));
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    store_ = std::move(*opened);
  }

  bool Create(const std::string& key, std::int64_t capacity) {
    return PolicyNode::Await<StoredPolicy>(
               [&](auto done) { store_->Create(Sample(key, capacity), "me", done); })
        .ok();
  }
  bool Delete(const std::string& key) {
    return PolicyNode::Await<StoredPolicy>([&](auto done) { store_->Delete(key, "me", done); })
        .ok();
  }
  /// Makes the node read again: a change that the server refuses or cannot store has that effect.
  void Look() {
    EXPECT_TRUE(WaitUntil([&] { return Create("look", 1) && Delete("look"); }));
    EXPECT_TRUE(Reads());
  }
  bool Reads() {
    return PolicyNode::Await<std::vector<PolicyChange>>(
               [&](auto done) { store_->History("", 1, done); })
        .ok();
  }
  std::int64_t Limit(const std::string& key) const {
    return catalog_.live().Current()->ForKey(key).quota()->limit();
  }
  std::vector<StoredPolicy> All() const { return store_->List("", 100).policies; }

 private:
  Catalog catalog_{CompileOptions{DefaultPolicy(), 0.1}};
  std::unique_ptr<PolicyStore> store_;
};

std::int64_t ChangesOf(const test::RedisServer& server) {
  return std::stoll(server.Command({"HGET", kState, "changes"}));
}

TEST(LostPolicies, AreRestoredAlthoughANodeThatNeverKnewThemMadeAChange) {
  const test::RedisServer server;
  Node a(server.url());
  ASSERT_TRUE(a.Create("k", 7));
  server.Command({"FLUSHALL"});
  Node fresh(server.url());
  ASSERT_TRUE(fresh.Create("other", 8));
  a.Look();
  fresh.Look();
  for (const Node* node : {&std::as_const(a), &std::as_const(fresh)}) {
    EXPECT_EQ(node->Limit("k"), 7);
    EXPECT_EQ(node->Limit("other"), 8);
    // Each was the first change of a new store.
    ASSERT_EQ(node->All().size(), 2U);
    EXPECT_NE(node->All()[0].id, node->All()[1].id);
  }
}

TEST(LostPolicies, WhatANodeMadeMeanwhileStaysAsItIs) {
  const test::RedisServer server;
  Node a(server.url());
  ASSERT_TRUE(a.Create("k", 7));
  ASSERT_TRUE(a.Create("l", 8));
  server.Command({"FLUSHALL"});
  Node fresh(server.url());
  ASSERT_TRUE(fresh.Create("k", 70));
  ASSERT_TRUE(fresh.Create("m", 9));  // the count is the same as before
  a.Look();
  EXPECT_EQ(a.Limit("k"), 70);
  EXPECT_EQ(a.Limit("l"), 8);
  EXPECT_EQ(a.Limit("m"), 9);
}

// b knows no more than what a has restored, and reads again after that was deleted.
TEST(LostPolicies, WhatWasDeletedAfterTheyWereRestoredDoesNotComeBack) {
  const test::RedisServer server;
  Node a(server.url());
  ASSERT_TRUE(a.Create("k", 7));
  ASSERT_TRUE(a.Create("l", 8));
  Node b(server.url());
  server.Command({"FLUSHALL"});
  Node fresh(server.url());
  ASSERT_TRUE(fresh.Create("other", 9));
  a.Look();
  ASSERT_TRUE(a.Delete("k"));
  b.Look();
  EXPECT_EQ(b.Limit("k"), 100) << "the default policy's";
  EXPECT_EQ(b.Limit("l"), 8);
  a.Look();
  EXPECT_EQ(a.Limit("k"), 100);
}

TEST(LostPolicies, ANodeThatKnowsMoreThanTheOneThatRestoredThemAddsIt) {
  const test::RedisServer server;
  Node a(server.url());
  ASSERT_TRUE(a.Create("k", 7));
  Node b(server.url());
  ASSERT_TRUE(b.Create("late", 8));
  server.Command({"FLUSHALL"});
  Node fresh(server.url());
  ASSERT_TRUE(fresh.Create("other", 9));
  a.Look();
  b.Look();
  a.Look();
  for (const Node* node : {&std::as_const(a), &std::as_const(b)}) {
    EXPECT_EQ(node->Limit("k"), 7);
    EXPECT_EQ(node->Limit("late"), 8);
    EXPECT_EQ(node->Limit("other"), 9);
  }
}

// A backup, or a replica that lagged: the same epoch, with a lower count.
TEST(LostPolicies, AnOlderStateGetsThePoliciesThatItLacks) {
  const test::RedisServer server;
  Node a(server.url());
  ASSERT_TRUE(a.Create("k", 7));
  ASSERT_TRUE(a.Create("late", 8));
  Node b(server.url());
  server.Command({"HDEL", "weir:{weir-policies}:policies", "late"});
  server.Command({"HSET", kState, "changes", "1"});
  a.Look();
  EXPECT_EQ(a.Limit("late"), 8);
  EXPECT_GT(ChangesOf(server), 1000) << "beyond what any node has seen";
  ASSERT_TRUE(a.Delete("late"));
  b.Look();
  EXPECT_EQ(b.Limit("late"), 100) << "restored and deleted since";
  EXPECT_EQ(b.Limit("k"), 7);
}

/// Leaves the server as weir 0.2 did.
void ForgetEpochs(const test::RedisServer& server) {
  for (const char* field : {"epoch", "of:"}) server.Command({"HDEL", kState, field});
}

TEST(LostPolicies, AStateWithoutAnEpochGoesOn) {
  const test::RedisServer server;
  {
    Node before(server.url());
    ASSERT_TRUE(before.Create("k", 7));
    ASSERT_TRUE(before.Create("l", 8));
  }
  ForgetEpochs(server);
  Node a(server.url());
  Node b(server.url());
  ASSERT_TRUE(a.Delete("k"));
  EXPECT_EQ(ChangesOf(server), 3);
  b.Look();
  EXPECT_EQ(b.Limit("k"), 100) << "nothing was lost";
  EXPECT_EQ(ChangesOf(server), 5) << "the two of a look";
  a.Look();
  EXPECT_EQ(a.Limit("l"), 8);
}

TEST(LostPolicies, OfAStateWithoutAnEpochAreRestored) {
  const test::RedisServer server;
  {
    Node before(server.url());
    ASSERT_TRUE(before.Create("k", 7));
  }
  ForgetEpochs(server);
  Node a(server.url());
  server.Command({"FLUSHALL"});
  Node fresh(server.url());
  ASSERT_TRUE(fresh.Create("other", 8));
  ASSERT_TRUE(fresh.Create("third", 9));
  a.Look();
  EXPECT_EQ(a.Limit("k"), 7);
  EXPECT_EQ(a.Limit("other"), 8);
  EXPECT_EQ(a.Limit("third"), 9);
}

// 0.2 wrote it: it has neither an epoch nor a policy from before.
TEST(LostPolicies, AreRestoredAlthoughAnOlderVersionMadeAChange) {
  const test::RedisServer server;
  Node a(server.url());
  ASSERT_TRUE(a.Create("k", 7));
  server.Command({"FLUSHALL"});
  {
    Node older(server.url());
    ASSERT_TRUE(older.Create("other", 8));
  }
  ForgetEpochs(server);
  a.Look();
  EXPECT_EQ(a.Limit("k"), 7);
  EXPECT_EQ(a.Limit("other"), 8);
}

// The second loss must not make b's outdated policies count as current.
TEST(LostPolicies, WhatWasDeletedDoesNotComeBackWithTheNextLossEither) {
  const test::RedisServer server;
  Node a(server.url());
  ASSERT_TRUE(a.Create("k", 7));
  ASSERT_TRUE(a.Create("l", 8));
  Node b(server.url());
  server.Command({"FLUSHALL"});
  a.Look();
  ASSERT_TRUE(a.Delete("k"));
  server.Command({"FLUSHALL"});
  a.Look();
  b.Look();
  a.Look();
  for (const Node* node : {&std::as_const(a), &std::as_const(b)}) {
    EXPECT_EQ(node->Limit("k"), 100) << "the default policy's";
    EXPECT_EQ(node->Limit("l"), 8);
  }
}

/// A node with a data folder.
class RememberedPolicies : public testing::Test {
 protected:
  std::unique_ptr<Node> Start() {
    return std::make_unique<Node>(server_.url(), std::move(*sqlite::PolicyMemory::Open(
                                                     (folder_ / "policies.db").string(), "here")));
  }

  test::RedisServer server_;  // keeps nothing on disk
  const test::TempDir folder_;
};

TEST_F(RememberedPolicies, AreGivenToAServerThatHasNone) {
  ASSERT_TRUE(Start()->Create("k", 7));
  server_.Kill();
  auto a = Start();
  EXPECT_EQ(a->Limit("k"), 7);
  server_.Start();
  EXPECT_TRUE(WaitUntil([&] { return a->Reads(); }));
  EXPECT_EQ(Node(server_.url()).Limit("k"), 7);
}

// Many may have been deleted since they were read, and the folder may be a copy from another
// service's.
TEST_F(RememberedPolicies, AreNotAddedToThoseOfAServer) {
  ASSERT_TRUE(Start()->Create("k", 7));
  server_.Kill();
  auto a = Start();
  server_.Start();
  Node fresh(server_.url());
  ASSERT_TRUE(fresh.Create("other", 8));
  EXPECT_TRUE(WaitUntil([&] { return a->Reads(); }));
  EXPECT_EQ(a->Limit("k"), 100) << "the default policy's";
  EXPECT_EQ(a->Limit("other"), 8);
  EXPECT_TRUE(a->Create("third", 9));
}

TEST_F(RememberedPolicies, ThatAreNoneAreNoLoss) {
  Start();
  server_.Kill();
  auto a = Start();
  server_.Start();
  EXPECT_TRUE(WaitUntil([&] { return a->Create("k", 7); }));
  EXPECT_EQ(ChangesOf(server_), 1);
}

}  // namespace
}  // namespace weir::policy
