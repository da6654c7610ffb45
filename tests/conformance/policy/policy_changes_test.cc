// Changes of policies, the same on every store.

#include "admin/policy_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "conformance/policy/policy_node.h"
#include "support/and_mysql.h"
#include "support/wait.h"

namespace weir::admin {
namespace {

using policy::AuditEntry;
using policy::KindName;
using policy::PolicyNode;
using policy::StoredPolicy;
using ::testing::HasSubstr;

class PolicyChangesTest : public policy::PolicyTest {
 protected:
  static StoredPolicy Sample(std::int64_t capacity, Nanos expires_at = 0) {
    return policy::Sample("user-1", capacity, expires_at);
  }

  using Outcome = Result<std::optional<StoredPolicy>>;
  template <typename Call>
  static Outcome Await(Call call) {
    return PolicyNode::Await<std::optional<StoredPolicy>>(call);
  }
  Outcome Create(const StoredPolicy& policy) {
    return Await([&](auto done) { changes_.Create(policy, "me", done); });
  }
  Outcome Update(const StoredPolicy& policy) {
    return Await([&](auto done) { changes_.Update(policy, "me", done); });
  }
  Outcome Delete() {
    return Await([&](auto done) { changes_.Delete("user-1", "me", done); });
  }
  Outcome RollBack(std::int64_t version, PolicyChanges::End end = {}) {
    return Await([&](auto done) { changes_.RollBack("user-1", version, end, "me", done); });
  }
  Outcome Undo(std::int64_t id, PolicyChanges::End end = {}) {
    return Await([&](auto done) { changes_.Undo(id, end, "me", done); });
  }
  std::int64_t InForce() { return node_->LimitInForce("user-1"); }
  std::vector<AuditEntry> Log() { return node_->Log(); }

  static constexpr std::int64_t kDefault = 100;  // the default policy's capacity

  PolicyChanges changes_{node_->store(), node_->catalog()};
};

INSTANTIATE_TEST_SUITE_P(Stores, PolicyChangesTest,
                         ::testing::ValuesIn(test::AndBothMysqls({"sqlite", "postgres", "mariadb",
                                                                  "redis", "redis_cluster"})),
                         KindName);

TEST_P(PolicyChangesTest, EveryChangeIsInTheLogWithBeforeAndAfter) {
  ASSERT_TRUE(Create(Sample(1)).ok());
  ASSERT_TRUE(Update(Sample(2)).ok());
  ASSERT_TRUE(Delete().ok());
  const auto log = Log();
  ASSERT_EQ(log.size(), 3U);  // latest first
  EXPECT_EQ(log[2].action, "policy.create");
  EXPECT_EQ(log[2].target, "policy:user-1");
  EXPECT_EQ(log[2].who, "me");
  EXPECT_EQ(log[2].before, "");
  EXPECT_THAT(log[2].after, HasSubstr("\"capacity\":1,"));
  EXPECT_EQ(log[1].before, log[2].after);
  EXPECT_THAT(log[1].after, HasSubstr("\"capacity\":2,"));
  EXPECT_EQ(log[0].before, log[1].after);
  EXPECT_EQ(log[0].after, "");
}

TEST_P(PolicyChangesTest, WhatIsRefusedIsNotInTheLog) {
  EXPECT_EQ(Update(Sample(1)).error().code, Code::kNotFound);
  ASSERT_TRUE(Create(Sample(1)).ok());
  EXPECT_EQ(Create(Sample(2)).error().code, Code::kAlreadyExists);
  EXPECT_EQ(Update(Sample(0)).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Log().size(), 1U);
}

TEST_P(PolicyChangesTest, UndoTakesBackEachKindOfChange) {
  ASSERT_TRUE(Create(Sample(1)).ok());  // 1
  ASSERT_TRUE(Update(Sample(2)).ok());  // 2
  ASSERT_TRUE(Undo(2).ok());            // 3
  EXPECT_EQ(InForce(), 1);
  ASSERT_TRUE(Delete().ok());  // 4
  EXPECT_EQ(InForce(), kDefault);
  ASSERT_TRUE(Undo(4).ok());  // 5: the policy exists again
  EXPECT_EQ(InForce(), 1);
  ASSERT_TRUE(Undo(5).ok());  // 6: an undo can be undone
  EXPECT_EQ(InForce(), kDefault);
  EXPECT_EQ(Log().front().undoes, 5);
  EXPECT_EQ(Log().front().action, "policy.undo");
}

TEST_P(PolicyChangesTest, UndoOfACreationDeletes) {
  ASSERT_TRUE(Create(Sample(1)).ok());
  const Outcome undone = Undo(1);
  ASSERT_TRUE(undone.ok());
  EXPECT_FALSE(undone->has_value());
  EXPECT_EQ(InForce(), kDefault);
}

TEST_P(PolicyChangesTest, OnlyTheLatestChangeOfATargetIsUndone) {
  ASSERT_TRUE(Create(Sample(1)).ok());
  ASSERT_TRUE(Update(Sample(2)).ok());
  EXPECT_EQ(Undo(1).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(Undo(99).error().code, Code::kNotFound);
  StoredPolicy other = Sample(7);
  other.key = "another";
  ASSERT_TRUE(Create(other).ok());  // with another target: does not block the undo
  EXPECT_TRUE(Undo(2).ok());
  EXPECT_EQ(InForce(), 1);
}

TEST_P(PolicyChangesTest, UndoGoesFurtherBackStepByStep) {
  ASSERT_TRUE(Create(Sample(1)).ok());  // 1
  ASSERT_TRUE(Update(Sample(2)).ok());  // 2
  ASSERT_TRUE(Update(Sample(3)).ok());  // 3
  ASSERT_TRUE(Undo(3).ok());            // 4
  EXPECT_EQ(InForce(), 2);
  EXPECT_THAT(Undo(1).error().message, HasSubstr("change 2 came later; undo that first"));
  EXPECT_THAT(Undo(3).error().message, HasSubstr("change 3 was already undone by change 4"));
  ASSERT_TRUE(Undo(2).ok());  // 5: not blocked by the undo of 3
  EXPECT_EQ(InForce(), 1);
  ASSERT_TRUE(Undo(5).ok());  // 6: restores 2
  EXPECT_EQ(InForce(), 2);
  ASSERT_TRUE(Undo(2).ok());  // 7
  ASSERT_TRUE(Undo(1).ok());  // 8
  EXPECT_EQ(InForce(), kDefault);
  EXPECT_EQ(Undo(2).error().code, Code::kFailedPrecondition);
  ASSERT_TRUE(Create(Sample(4)).ok());  // 9
  EXPECT_THAT(Undo(1).error().message, HasSubstr("change 9 came later"));
}

TEST_P(PolicyChangesTest, TheAuditLogIsFilteredByActionAndTargetPageByPage) {
  ASSERT_TRUE(Create(Sample(1)).ok());  // entry 1
  for (int i = 0; i < 3; ++i) {         // 2 to 7
    node_->Append({.who = "d", .action = "slot.claim", .target = "payout"});
    node_->Append({.who = "k", .action = "notify.send"});
  }
  ASSERT_TRUE(Update(Sample(2)).ok());                                              // 8
  node_->Append({.who = "k", .action = "key.reset", .target = "key:a"});            // 9
  node_->Append({.who = "f", .action = "policy.file", .target = "file:api/b"});     // 10
  node_->Append({.who = "k", .action = "policyholder.new", .target = "holder:a"});  // 11
  const auto ids = [&](const policy::AuditQuery& query) {
    std::vector<std::int64_t> found;
    const auto page = PolicyNode::Await<std::vector<AuditEntry>>(
        [&](auto done) { node_->store().ListEntries(query, done); });
    EXPECT_TRUE(page.ok());
    for (const AuditEntry& entry : *page) found.push_back(entry.id);
    return found;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(ids({.actions = {"policy"}}), ElementsAre(10, 8, 1));
  EXPECT_THAT(ids({.limit = 2, .actions = {"policy"}}), ElementsAre(10, 8));
  EXPECT_THAT(ids({.before = 8, .limit = 2, .actions = {"policy"}}), ElementsAre(1));
  EXPECT_THAT(ids({.actions = {"policy.update", "key"}}), ElementsAre(9, 8));
  EXPECT_THAT(ids({.except = {"slot.claim", "notify.send", "policyholder"}}),
              ElementsAre(10, 9, 8, 1));
  EXPECT_THAT(ids({.actions = {"policy"}, .except = {"policy.file"}}), ElementsAre(8, 1));
  EXPECT_THAT(ids({.target = "policy:user-1"}), ElementsAre(8, 1));
  EXPECT_THAT(ids({.before = 8, .target = "policy:user-1"}), ElementsAre(1));
  EXPECT_THAT(ids({.target = "payout", .actions = {"policy"}}), ElementsAre());
  EXPECT_THAT(ids({.actions = {"nothing"}}), ElementsAre());
}

TEST_P(PolicyChangesTest, RollBackMakesItWhatItWasAlsoAfterADeletion) {
  ASSERT_TRUE(Create(Sample(1)).ok());  // version 1
  ASSERT_TRUE(Update(Sample(2)).ok());  // version 2
  Outcome back = RollBack(1);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ((*back)->version, 3);  // a new version with the contents of the old one
  EXPECT_EQ(InForce(), 1);
  ASSERT_TRUE(Delete().ok());
  back = RollBack(2);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ((*back)->version, 4);
  EXPECT_EQ(InForce(), 2);
  EXPECT_EQ(RollBack(9).error().code, Code::kNotFound);
}

TEST_P(PolicyChangesTest, AnUndoNamesTheDeletionThatCameLater) {
  ASSERT_TRUE(Create(Sample(1)).ok());
  ASSERT_TRUE(Update(Sample(2)).ok());
  ASSERT_TRUE(Delete().ok());
  for (const std::int64_t change : {1, 2}) {
    const Outcome undone = Undo(change);
    EXPECT_EQ(undone.error().code, Code::kFailedPrecondition);
    EXPECT_THAT(undone.error().message, HasSubstr("change 3 came later"));
  }
  EXPECT_TRUE(Undo(3).ok());
}

TEST_P(PolicyChangesTest, WhatExpiresGivesWayToTheVersionBefore) {
  const Nanos end = SystemClock::Get().Now() + Nanos{3600} * 1'000'000'000;
  ASSERT_TRUE(Create(Sample(1)).ok());
  ASSERT_TRUE(Update(Sample(2, end)).ok());
  ASSERT_TRUE(Update(Sample(3, end)).ok());  // corrected in the meantime: still the same exception
  changes_.EndExpired(end - 1);
  EXPECT_EQ(InForce(), 3);
  changes_.EndExpired(end);
  EXPECT_TRUE(test::WaitUntil([&] { return InForce() == 1; }));
  ASSERT_EQ(Log().size(), 4U);
  EXPECT_EQ(Log()[0].action, "policy.expire");
  EXPECT_THAT(Log()[0].before, HasSubstr("\"capacity\":3,"));
  EXPECT_THAT(Log()[0].after, HasSubstr("\"capacity\":1,"));
}

TEST_P(PolicyChangesTest, WhatHasEndedComesBackWithANewEndOnly) {
  // Whole seconds, which the history keeps.
  constexpr Nanos kSecond = 1'000'000'000;
  const Nanos past = SystemClock::Get().Now() / kSecond * kSecond;
  const Nanos later = past + 3600 * kSecond;
  ASSERT_TRUE(Create(Sample(1)).ok());
  ASSERT_TRUE(Update(Sample(2, past)).ok());
  ASSERT_TRUE(Update(Sample(3)).ok());
  EXPECT_EQ(RollBack(2).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(Undo(3).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(RollBack(2, past).error().code, Code::kInvalidArgument);
  EXPECT_EQ(InForce(), 3);
  EXPECT_EQ((*RollBack(2, later))->expires_at, later);
  EXPECT_EQ((*RollBack(4))->expires_at, later);  // its own end is still in the future
  EXPECT_EQ((*RollBack(2, 0))->expires_at, 0);
  EXPECT_EQ(InForce(), 2);
}

TEST_P(PolicyChangesTest, WhatWasNewGoesWhenItExpires) {
  const Nanos end = SystemClock::Get().Now() + Nanos{3600} * 1'000'000'000;
  ASSERT_TRUE(Create(Sample(2, end)).ok());
  changes_.EndExpired(end);
  EXPECT_TRUE(test::WaitUntil([&] { return InForce() == kDefault; }));
  EXPECT_EQ(Update(Sample(5)).error().code, Code::kNotFound);
  EXPECT_EQ(Log()[0].who, "expiry");
  changes_.EndExpired(end + 1);
  EXPECT_EQ(Log().size(), 2U);
}

/// A separate suite: on some stores a thousand changes take too long.
class LongHistoryTest : public PolicyChangesTest {};

INSTANTIATE_TEST_SUITE_P(Stores, LongHistoryTest, ::testing::Values("sqlite"), KindName);

// More changes with an end than the history keeps: it no longer has the version without one.
TEST_P(LongHistoryTest, AnExceptionThatOutlivedItsHistoryStays) {
  const Nanos end = SystemClock::Get().Now() + Nanos{3600} * 1'000'000'000;
  ASSERT_TRUE(Create(Sample(1)).ok());
  for (std::size_t i = 0; i <= policy::kMaxVersions; ++i) ASSERT_TRUE(Update(Sample(2, end)).ok());
  changes_.EndExpired(end);
  EXPECT_FALSE(test::WaitUntil([&] { return InForce() != 2; }, std::chrono::milliseconds(300)));
}

}  // namespace
}  // namespace weir::admin
