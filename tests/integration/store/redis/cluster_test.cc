// A cluster whose slots move and whose masters change: no check is lost or counted twice, as long
// as no node is killed; and after that, the service continues.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/key_spread.h"
#include "drivers/redis/slot.h"
#include "integration/store/redis/client.h"
#include "store/redis/names.h"
#include "support/redis_cluster.h"
#include "support/stopwatch.h"

namespace weir::store::redis {
namespace {

using std::chrono_literals::operator""s;

class RedisClusterStore : public testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = new test::RedisCluster; }
  static void TearDownTestSuite() { delete cluster_; }

  static std::uint16_t SlotOfKey(const std::string& key) {
    return weir::redis::SlotOf("{" + Names("", true, "").Tag(key) + "}");
  }

  static test::RedisCluster* cluster_;
};

test::RedisCluster* RedisClusterStore::cluster_ = nullptr;

TEST_F(RedisClusterStore, DomainsSpreadOverAllMasters) {
  Client client({.url = cluster_->url()});
  const Quota quota = *Quota::FixedWindow(10, kMaxWindow);
  for (int i = 0; i < 60; ++i) {
    const std::string key = "spread" + std::to_string(i) + "/p|user:1";
    ASSERT_TRUE(client.One(Op::kCharge, {key, 1, &quota}).applied);
  }
  for (std::size_t i = 0; i < test::RedisCluster::kMasters; ++i) {
    EXPECT_NE(cluster_->node(i).Command({"DBSIZE"}), "0") << i;
  }
}

/// Charges of one request.
struct Group {
  std::vector<Charge> charges;
  std::vector<Decision> decisions = std::vector<Decision>(charges.size());
  Application application = {};

  bool Ask(Client& client, Op op) {
    application = {};
    application.op = op;
    application.charges = charges;
    application.decisions = decisions;
    client.Apply(std::span(&application, 1));
    EXPECT_TRUE(application.status.ok()) << application.status.error().message;
    return application.applied;
  }
};

TEST_F(RedisClusterStore, KeysOfSeveralSlotsAreChargedAllOrNone) {
  Client client({.url = cluster_->url()});
  const Quota last = *Quota::FixedWindow(2, kMaxWindow);
  for (const Quota& quota :
       {*Quota::TokenBucket(10, 1, std::chrono::hours(24)), *Quota::FixedWindow(10, kMaxWindow),
        *Quota::SlidingLog(10, kMaxWindow), *Quota::SlidingCounter(10, kMaxWindow, 10),
        *Quota::AnchoredWindow(10, kMaxWindow), *Quota::Concurrency(10, std::chrono::hours(24))}) {
    const std::string name = quota.ToString();
    const std::string one = "a-" + name + "/p|user:1";
    const std::string two = "b-" + name + "/p|user:1";
    const std::string three = "z-" + name + "/p|user:1";
    Group group{{{three, 1, &last}, {one, 3, &quota}, {two, 2, &quota}}};
    EXPECT_TRUE(group.Ask(client, Op::kCharge)) << name;
    EXPECT_EQ(group.decisions[1].remaining, 7) << name;
    EXPECT_EQ(group.decisions[2].remaining, 8) << name;
    // The first two slots grant it, the third denies.
    Group refused{{{three, 2, &last}, {one, 3, &quota}, {two, 2, &quota}}};
    EXPECT_FALSE(refused.Ask(client, Op::kCharge)) << name;
    EXPECT_FALSE(refused.decisions[0].allowed()) << name;
    Group look{{{three, 0, &last}, {one, 0, &quota}, {two, 0, &quota}}};
    EXPECT_TRUE(look.Ask(client, Op::kPeek));
    EXPECT_EQ(look.decisions[0].remaining, 1) << name;
    EXPECT_EQ(look.decisions[1].remaining, 7) << name << ": what was refused stays charged";
    EXPECT_EQ(look.decisions[2].remaining, 8) << name << ": what was refused stays charged";
    // A slot before the others denies: nothing was charged yet, and all return their current state.
    Group early{{{three, 1, &last}, {one, 9, &quota}, {two, 2, &quota}}};
    EXPECT_FALSE(early.Ask(client, Op::kCharge)) << name;
    EXPECT_EQ(early.decisions[2].limit, 10) << name;
    EXPECT_TRUE(look.Ask(client, Op::kPeek));
    EXPECT_EQ(look.decisions[2].remaining, 8) << name;
  }
}

TEST_F(RedisClusterStore, AReservationKeepsToOneSlot) {
  Client client({.url = cluster_->url()});
  const Quota quota = *Quota::FixedWindow(10, kMaxWindow);
  const Quota record = *Quota::Concurrency(1, std::chrono::hours(1));
  Group group{{{"one/p|user:1|%reserved:00", 1, &record}, {"two/p|user:1", 1, &quota}}};
  group.application.charges = group.charges;
  group.application.decisions = group.decisions;
  client.Apply(std::span(&group.application, 1));
  ASSERT_FALSE(group.application.status.ok());
  EXPECT_EQ(group.application.status.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(client.One(Op::kPeek, {"two/p|user:1", 1, &quota}).decision.remaining, 10);
}

// Checks that wait or are under way when policies change keep the names they were sorted by.
TEST_F(RedisClusterStore, KeysMoveWhenPoliciesSaySo) {
  const auto spread = std::make_shared<KeySpread>();
  Client client({.url = cluster_->url(), .spread = spread});
  const Quota quota = *Quota::FixedWindow(10, kMaxWindow);
  const auto charge = [&](int user) {
    const std::string key = "live/p|user:" + std::to_string(user);
    return client.One(Op::kCharge, {key, 1, &quota});
  };
  for (int i = 0; i < 100; ++i) {
    KeyPlaces places;
    if (i % 2 == 1) places["live/p"].entries = {"user"};
    spread->Publish(std::move(places));
    const Client::Answer answer = charge(i / 2);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error().message;
    EXPECT_EQ(answer.decision.remaining, 9) << "a key that has moved starts empty";
  }
  EXPECT_EQ(charge(7).decision.remaining, 8);
}

TEST_F(RedisClusterStore, FollowsASlotThatMoves) {
  Client client({.url = cluster_->url()});
  Client newcomer({.url = cluster_->url()});
  const Quota quota = *Quota::FixedWindow(10, kMaxWindow);
  const std::string key = "moving/p|user:1";
  const std::uint16_t slot = SlotOfKey(key);
  // The store knows the slot's master before the slot moves; its table is then outdated.
  EXPECT_EQ(client.One(Op::kPeek, {key, 1, &quota}).decision.remaining, 10);
  const std::size_t from = cluster_->MasterOf(slot);
  const std::size_t to = (from + 1) % test::RedisCluster::kMasters;

  // Half-way: the old master does not have the key and answers ASK.
  cluster_->BeginMove(slot, to);
  const Client::Answer asked = client.One(Op::kCharge, {key, 1, &quota});
  ASSERT_TRUE(asked.status.ok()) << asked.status.error().message;
  EXPECT_EQ(asked.decision.remaining, 9);
  cluster_->EndMove(slot, to);
  const Client::Answer moved = client.One(Op::kCharge, {key, 1, &quota});
  ASSERT_TRUE(moved.status.ok()) << moved.status.error().message;
  EXPECT_EQ(moved.decision.remaining, 8);
  EXPECT_EQ(newcomer.One(Op::kCharge, {key, 1, &quota}).decision.remaining, 7);
}

TEST_F(RedisClusterStore, AnOrderlyFailoverLosesNothing) {
  Client client({.url = cluster_->url(), .command_timeout = 10s});
  const Quota quota = *Quota::FixedWindow(1'000'000, kMaxWindow);
  const std::string key = "orderly/p|user:1";
  const std::uint16_t slot = SlotOfKey(key);
  std::int64_t charged = 0;
  for (int i = 0; i < 50; ++i) charged += client.One(Op::kCharge, {key, 1, &quota}).applied ? 1 : 0;
  cluster_->Failover(slot);
  for (int i = 0; i < 50; ++i) {
    const Client::Answer answer = client.One(Op::kCharge, {key, 1, &quota});
    // The old master may have closed the connection, and then it is unknown whether it counted.
    if (answer.status.ok()) charged += answer.applied ? 1 : 0;
  }
  EXPECT_GE(charged, 99);
  const std::int64_t used = 1'000'000 - client.One(Op::kPeek, {key, 1, &quota}).decision.remaining;
  EXPECT_GE(used, charged);
  EXPECT_LE(used, 100);
}

// Last, since it leaves the cluster with one node less.
TEST_F(RedisClusterStore, GoesOnAfterAMasterWasKilled) {
  Client client({.url = cluster_->url()});
  const Quota quota = *Quota::FixedWindow(1'000'000, kMaxWindow);
  const std::string key = "killed/p|user:1";
  const std::uint16_t slot = SlotOfKey(key);
  ASSERT_TRUE(client.One(Op::kCharge, {key, 1, &quota}).applied);
  cluster_->node(cluster_->MasterOf(slot)).Kill();
  const auto deadline = std::chrono::steady_clock::now() + 120s;
  Client::Answer answer;
  do {
    const test::Stopwatch watch;
    answer = client.One(Op::kCharge, {key, 1, &quota});
    EXPECT_LT(watch.elapsed(), 2s) << "not within the command's timeout";
  } while (!answer.status.ok() && std::chrono::steady_clock::now() < deadline);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error().message;
}

}  // namespace
}  // namespace weir::store::redis
