#include "slots/claim_audit.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/idle_slot_store.h"

namespace weir::slots {
namespace {

constexpr Nanos kSecond = 1'000'000'000;

/// Has notes, and records which it is told to forget.
class NotedStore final : public test::IdleSlotStore {
 public:
  std::vector<ClaimNote> notes;
  std::vector<ClaimNote> forgotten;
  int taken = 0;

  void TakeNotes(Millis, Done<std::vector<ClaimNote>> done) override {
    ++taken;
    done(notes);
  }
  void ForgetNotes(std::vector<ClaimNote> gone, Done<std::size_t> done) override {
    forgotten.insert(forgotten.end(), gone.begin(), gone.end());
    done(gone.size());
  }
};

struct Log {
  std::vector<std::pair<ClaimNote, ClaimAudit::Written>> asked;

  ClaimAudit::Write Writer() {
    return [this](const ClaimNote& note, ClaimAudit::Written written) {
      asked.emplace_back(note, std::move(written));
    };
  }
};

TEST(ClaimAudit, ForgetsWhatIsWrittenAndNothingElse) {
  NotedStore store;
  store.notes = {{60'000, "pay", "d1", 5}, {60'000, "pay", "d2", 7}};
  Log log;
  ClaimAudit audit(store, log.Writer());
  audit.OnSecond(kSecond);
  ASSERT_EQ(log.asked.size(), 2U);
  log.asked[0].second(true);
  EXPECT_TRUE(store.forgotten.empty()) << "the other one is on its way";
  log.asked[1].second(false);
  EXPECT_EQ(store.forgotten, (std::vector<ClaimNote>{{60'000, "pay", "d1", 5}}));
}

TEST(ClaimAudit, AsksEveryTenSecondsAndNotWhileItIsWriting) {
  NotedStore store;
  store.notes = {{60'000, "pay", "d1", 5}};
  Log log;
  ClaimAudit audit(store, log.Writer());
  audit.OnSecond(kSecond);
  audit.OnSecond(30 * kSecond);
  EXPECT_EQ(store.taken, 1) << "the first note is not written yet";
  log.asked[0].second(true);
  audit.OnSecond(31 * kSecond);
  EXPECT_EQ(store.taken, 2);
  log.asked[1].second(true);
  audit.OnSecond(40 * kSecond);
  EXPECT_EQ(store.taken, 2);
  audit.OnSecond(41 * kSecond);
  EXPECT_EQ(store.taken, 3);
}

TEST(ClaimAudit, GoesOnAfterTheClockWasSetBack) {
  NotedStore store;
  Log log;
  ClaimAudit audit(store, log.Writer());
  audit.OnSecond(3600 * kSecond);
  EXPECT_EQ(store.taken, 1);
  audit.OnSecond(10 * kSecond);
  audit.OnSecond(21 * kSecond);
  EXPECT_EQ(store.taken, 2);
}

TEST(ClaimAudit, AnAnswerAfterItIsClosedDoesNotReachTheStore) {
  NotedStore store;
  store.notes = {{60'000, "pay", "d1", 5}};
  Log log;
  ClaimAudit audit(store, log.Writer());
  audit.OnSecond(kSecond);
  audit.Close();
  log.asked[0].second(true);
  EXPECT_TRUE(store.forgotten.empty());
}

}  // namespace
}  // namespace weir::slots
