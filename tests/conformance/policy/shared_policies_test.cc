// Several nodes with their policies in one database.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "admin/policy_changes.h"
#include "conformance/policy/policy_node.h"
#include "support/and_mysql.h"
#include "support/wait.h"

namespace weir::policy {
namespace {

using namespace std::chrono_literals;
using admin::PolicyChanges;
using test::WaitUntil;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::int64_t kDefault = 100;  // the default policy's capacity

class SharedPoliciesTest : public PolicyTest {
 protected:
  PolicyNode& a() { return *node_; }
  PolicyNode& b() { return *other_; }

  std::unique_ptr<PolicyNode> other_ = std::make_unique<PolicyNode>(place_);
};

INSTANTIATE_TEST_SUITE_P(Stores, SharedPoliciesTest,
                         ::testing::ValuesIn(test::AndBothMysqls({"postgres", "mariadb", "redis",
                                                                  "redis_cluster"})),
                         KindName);

/// Stores with tables that have to be created.
class PolicyTablesTest : public SharedPoliciesTest {};

INSTANTIATE_TEST_SUITE_P(Tables, PolicyTablesTest,
                         ::testing::ValuesIn(test::AndBothMysqls({"postgres", "mariadb"})),
                         KindName);

TEST_P(SharedPoliciesTest, AChangeReachesTheOtherNode) {
  ASSERT_TRUE(a().Create(Sample("k", 7)).ok());
  EXPECT_TRUE(WaitUntil([&] { return b().LimitInForce("k") == 7; }));
  ASSERT_TRUE(b().Update(Sample("k", 8)).ok());
  EXPECT_TRUE(WaitUntil([&] { return a().LimitInForce("k") == 8; }));
  ASSERT_TRUE(a().Delete("k").ok());
  EXPECT_TRUE(WaitUntil([&] { return b().LimitInForce("k") == kDefault; }));
  EXPECT_TRUE(WaitUntil([&] { return b().store().health().change == 3; }));
}

TEST_P(SharedPoliciesTest, NodesThatChangeAtOnceEachGetAVersionAndNoneIsLost) {
  constexpr std::size_t kEach = 25;
  ASSERT_TRUE(a().Create(Sample("k", 1)).ok());  // version 1
  const auto change = [](PolicyNode& node, std::set<std::int64_t>& versions) {
    for (std::size_t i = 0; i < kEach; ++i) {
      const Result<StoredPolicy> updated = node.Update(Sample("k", static_cast<int>(i) + 1));
      if (updated.ok()) versions.insert(updated->version);
    }
  };
  std::set<std::int64_t> of_a;
  std::set<std::int64_t> of_b;
  // Node b may not have received the policy yet; the database has it.
  std::thread other([&] { change(b(), of_b); });
  change(a(), of_a);
  other.join();
  EXPECT_THAT(of_a, SizeIs(kEach));
  EXPECT_THAT(of_b, SizeIs(kEach));
  of_a.insert(of_b.begin(), of_b.end());
  // Versions 2 to 51, each assigned once.
  EXPECT_THAT(of_a, SizeIs(2 * kEach));
  EXPECT_EQ(*of_a.begin(), 2);
  EXPECT_EQ(*of_a.rbegin(), 51);
  const auto history = a().History("k", 1000);
  ASSERT_TRUE(history.ok());
  ASSERT_THAT(*history, SizeIs(2 * kEach + 1));
  for (std::size_t i = 0; i < history->size(); ++i) {
    EXPECT_EQ(VersionIn((*history)[i].after), 51 - static_cast<std::int64_t>(i));
  }
  // Both end with the last of them.
  EXPECT_TRUE(WaitUntil(
      [&] { return a().store().Get("k")->version == 51 && b().store().Get("k")->version == 51; }));
  EXPECT_EQ(*a().store().Get("k"), *b().store().Get("k"));
}

TEST_P(SharedPoliciesTest, OneOfTwoWhoCreateTheSameIsRefused) {
  for (int i = 0; i < 10; ++i) {
    const std::string key = "k" + std::to_string(i);
    bool ok_b = false;
    std::thread other([&] { ok_b = b().Create(Sample(key, 2)).ok(); });
    const bool ok_a = a().Create(Sample(key, 1)).ok();
    other.join();
    EXPECT_NE(ok_a, ok_b) << key;
    EXPECT_TRUE(WaitUntil([&] { return b().LimitInForce(key) == (ok_a ? 1 : 2); }));
    EXPECT_TRUE(WaitUntil([&] { return a().LimitInForce(key) == (ok_a ? 1 : 2); }));
  }
}

TEST_P(SharedPoliciesTest, OneNodeUndoesWhatAnotherDidUnlessAThirdCameBetween) {
  PolicyChanges at_b(b().store(), b().catalog());
  const auto undo = [&](std::int64_t id) {
    return PolicyNode::Await<std::optional<StoredPolicy>>(
        [&](auto done) { at_b.Undo(id, {}, "me", done); });
  };
  ASSERT_TRUE(a().Create(Sample("k", 1)).ok());  // entry 1
  ASSERT_TRUE(a().Update(Sample("k", 2)).ok());  // entry 2
  EXPECT_EQ(undo(1).error().code, Code::kFailedPrecondition);
  ASSERT_TRUE(undo(2).ok());
  EXPECT_EQ(b().LimitInForce("k"), 1);
  EXPECT_TRUE(WaitUntil([&] { return a().LimitInForce("k") == 1; }));
}

TEST_P(SharedPoliciesTest, WhatExpiresEndsOnceThoughAllNodesSeeIt) {
  const Nanos end = SystemClock::Get().Now() + Nanos{3600} * 1'000'000'000;
  ASSERT_TRUE(a().Create(Sample("k", 1)).ok());
  ASSERT_TRUE(a().Update(Sample("k", 2, end)).ok());
  ASSERT_TRUE(WaitUntil([&] { return b().LimitInForce("k") == 2; }));
  PolicyChanges at_a(a().store(), a().catalog());
  PolicyChanges at_b(b().store(), b().catalog());
  at_a.EndExpired(end);
  at_b.EndExpired(end);
  EXPECT_TRUE(WaitUntil([&] { return a().LimitInForce("k") == 1 && b().LimitInForce("k") == 1; }));
  // Both nodes' cleanups are over: earlier requests are answered first.
  (void)b().History("k", 1);
  (void)b().History("k", 1);
  EXPECT_THAT(a().Log(), SizeIs(3));
  EXPECT_EQ(a().Log()[0].action, "policy.expire");
}

TEST_P(PolicyTablesTest, TablesAreMadeOnceWhoeverMakesThem) {
  const auto migrate = [&] {
    return GetParam() == "postgres" ? postgres::Migrate(place_.url())
                                    : mysql::Migrate(place_.url());
  };
  ASSERT_TRUE(a().Create(Sample("k", 7)).ok());
  std::thread other([&] { EXPECT_TRUE(migrate().ok()); });
  EXPECT_TRUE(migrate().ok());
  other.join();
  const PolicyNode third(place_);
  EXPECT_EQ(a().store().List("", 10).total, 1U);
}

TEST_P(PolicyTablesTest, WithoutTablesAndTheRightToMakeThemItSaysWhatToDo) {
  const PolicyPlace empty(GetParam());
  Catalog catalog{CompileOptions{DefaultPolicy(), 0.1}};
  const auto store = empty.OpenShared(catalog, {.migrate = false});
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(store.error().message, HasSubstr("weir migrate"));
}

TEST_P(SharedPoliciesTest, AZeroByteIsRefusedBeforeTheDatabaseIs) {
  StoredPolicy policy = Sample("k");
  policy.has_match = true;
  policy.match = {MakeEntryMatch("user", std::string_view("a\0b", 3))};
  const Result<StoredPolicy> created = a().Create(policy);
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().code, Code::kInvalidArgument);
  EXPECT_THAT(created.error().message, HasSubstr("match.user"));
}

TEST_P(SharedPoliciesTest, WhatWasReadIsRememberedForThisDatabaseAlone) {
  const std::string file = place_.File("policies.db");
  StoredPolicy full = Sample("k", 7);
  full.has_match = true;
  full.match = {MakeEntryMatch("user", "*"), MakeEntryMatch("route", "/v1/*")};
  const Result<StoredPolicy> created = a().Create(full);
  ASSERT_TRUE(created.ok());
  {
    auto memory = sqlite::PolicyMemory::Open(file, "here");
    ASSERT_TRUE(memory.ok());
    const PolicyNode remembering(place_, {.memory = std::move(*memory)});
  }
  auto memory = sqlite::PolicyMemory::Open(file, "here");
  ASSERT_TRUE(memory.ok());
  const auto known = (*memory)->Load();
  ASSERT_TRUE(known.ok());
  ASSERT_THAT(known->policies, SizeIs(1));
  EXPECT_EQ(known->policies.at("k"), *created);
  auto other = sqlite::PolicyMemory::Open(file, "elsewhere");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ((*other)->Load().error().code, Code::kNotFound);
}

TEST_P(SharedPoliciesTest, OfAPolicyTheLatestThousandChangesAreKeptAndOfADeletedOneNone) {
  ASSERT_TRUE(a().Create(Sample("busy")).ok());    // entry 1
  ASSERT_TRUE(a().Create(Sample("gone")).ok());    // 2
  ASSERT_TRUE(a().Create(Sample("seldom")).ok());  // 3
  ASSERT_TRUE(a().Delete("gone").ok());            // 4
  if (place_.is_redis()) {
    for (int n = 5; n <= 1503; ++n) {
      a().Append({.at = 1,
                  .who = "me",
                  .action = "policy.update",
                  .target = "policy:busy",
                  .before = "{}",
                  .after = "{\"version\":1}"});
    }
  } else {
    place_.Query(
        place_.kind() == "postgres"
            ? "INSERT INTO weir_audit SELECT n, 1, 'me', 'policy.update', 'policy:busy', '{}', "
              "'{\"version\":1}', 0 FROM generate_series(5, 1503) AS n"
            : "SET /*!80000 cte_max_recursion_depth*/ /*M! max_recursive_iterations*/ = 2000; "
              "INSERT "
              "INTO weir_audit WITH RECURSIVE"
              " numbers(n) AS (SELECT 5 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1503)"
              " SELECT n, 1, 'me', 'policy.update', 'policy:busy', '{}', '{\"version\":1}', 0"
              " FROM numbers");
    place_.Query("UPDATE weir_policy_state SET last_entry = 1503");
  }
  // Both nodes in parallel, a few at a time: 1,500 changes of busy less 1,000, and the two of gone.
  constexpr Nanos kFarAhead = Nanos{1} << 62;
  const auto trim = [](PolicyNode& node) {
    while (node.Trim(1, kFarAhead, 100) > 0) {
    }
  };
  std::thread other([&] { trim(b()); });
  trim(a());
  other.join();
  EXPECT_THAT(*a().History("busy", 1000), SizeIs(1000));
  EXPECT_THAT(*a().History("seldom", 1000), SizeIs(1));
  EXPECT_THAT(*a().History("gone", 1000), SizeIs(0));
  EXPECT_EQ(a().History("busy", 1000)->back().id, 504);  // 504 to 1503
  // Policies in force stay in force, and entry numbers continue.
  ASSERT_TRUE(b().Update(Sample("seldom", 7)).ok());
  EXPECT_EQ(b().Ids().front(), 1504);
}

}  // namespace
}  // namespace weir::policy
