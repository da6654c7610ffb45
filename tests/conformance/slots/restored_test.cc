#include <gmock/gmock.h>

#include "execution_fixture.h"

// A store that was restored from a backup, on every store. What came due since the backup may have
// been executed.

namespace weir::slots {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

class RestoredStore : public Execution {};

TEST_P(RestoredStore, DeliversWhatWasDueAsARedelivery) {
  client().Put(Pay(10));
  client().Assign(client().Ask("due", "pay", kNoon));
  client().Assign(client().Ask("later", "pay", kNoon + 100 * kWindow));

  const Restored restored = client().MarkRestored(kNoon + kWindow);

  EXPECT_EQ(restored.marked, 1);
  EXPECT_EQ(restored.until, kNoon + kWindow + kMaxAhead);
  EXPECT_EQ(restored.newest, client().Look("later")->created_at);
  const Claim due = ClaimAt(kNoon + kWindow);
  ASSERT_THAT(due.events, SizeIs(1));
  EXPECT_EQ(due.events[0].attempt, 2);
  EXPECT_EQ(client().Look("due")->history.at(0).what, kFromBackup);
  AllDone(due, kNoon + kWindow);
  const Claim later = ClaimAt(kNoon + 101 * kWindow);
  ASSERT_THAT(later.events, SizeIs(1));
  EXPECT_EQ(later.events[0].attempt, 1) << "it was not due";
}

// A dispatcher may hold claims from before the restore: they must not end the new ones.
TEST_P(RestoredStore, DoesNotTakeTheEndOfAClaimThatItDoesNotKnow) {
  client().Put(Pay(10));
  client().Assign(client().Ask("e", "pay", kNoon));
  client().MarkRestored(kNoon + kWindow);

  const std::vector<Finish> before = {{.event_id = "e", .attempt = 1, .now = kNoon + kWindow}};
  EXPECT_THAT(client().Finish(before), ElementsAre(Finished::kLost));
  ASSERT_THAT(ClaimAt(kNoon + kWindow).events, SizeIs(1));
  EXPECT_THAT(client().Finish(before), ElementsAre(Finished::kLost));
}

TEST_P(RestoredStore, MarksWhatWasCancelledInTheBackup) {
  client().Put(Pay(10));
  client().Assign(client().Ask("e", "pay", kNoon));
  client().Cancel("e");
  EXPECT_EQ(client().MarkRestored(kNoon + kWindow).marked, 1);

  ASSERT_TRUE(client().Restore({.event_id = "e", .requested = kNoon}));
  const Claim claim = ClaimAt(kNoon + kWindow);
  ASSERT_THAT(claim.events, SizeIs(1));
  EXPECT_EQ(claim.events[0].attempt, 2);
}

TEST_P(RestoredStore, LeavesWhatIsOverAlone) {
  client().Put(Pay(10));
  client().Assign(client().Ask("e", "pay", kNoon));
  AllDone(ClaimAt(kNoon + kWindow), kNoon + kWindow);

  EXPECT_EQ(client().MarkRestored(kNoon + kWindow).marked, 0);
  EXPECT_EQ(client().Look("e")->attempts, 1);
}

// The backup does not contain the event, and its feed is imported again.
TEST_P(RestoredStore, MarksWhatIsAssignedAgainForATimeThatHasPassed) {
  client().Put(Pay(10));
  const Millis until = client().MarkRestored(kNoon + kWindow).until;
  EXPECT_EQ(client().MarkRestored(kNoon + kWindow).until, until) << "it may be told twice";

  const auto answers =
      client().Assign({client().Ask("again", "pay", kNoon), client().Ask("last", "pay", until),
                       client().Ask("new", "pay", until + 1)});
  for (const Answer& answer : answers) EXPECT_EQ(answer.outcome, Outcome::kNew);
  EXPECT_EQ(client().Look("again")->attempts, 1);
  EXPECT_EQ(client().Look("again")->history.at(0).what, kFromBackup);
  EXPECT_EQ(client().Look("last")->attempts, 1);
  EXPECT_EQ(client().Look("new")->attempts, 0);
  EXPECT_EQ(client().Assign(client().Ask("again", "pay", kNoon)).outcome, Outcome::kExisting);
  EXPECT_THAT(client().Look("again")->history, SizeIs(1));
}

// It may have been moved to an earlier time after the backup, and executed: it is not due in the
// backup, and whoever moves it there again must not execute it unmarked.
TEST_P(RestoredStore, MarksWhatIsMovedAgain) {
  client().Put(Pay(10));
  const Millis later = MachineMillis() + 24 * 3'600'000;
  client().Assign({client().Ask("earlier", "pay", later), client().Ask("later", "pay", later),
                   client().Ask("cancelled", "pay", later), client().Ask("stays", "pay", later)});
  client().Cancel("cancelled");
  EXPECT_EQ(client().MarkRestored(0).marked, 0);

  ASSERT_TRUE(client().Reschedule({.event_id = "earlier", .requested = kNoon}));
  ASSERT_TRUE(client().Reschedule({.event_id = "later", .requested = later + kWindow}));
  ASSERT_TRUE(client().Restore({.event_id = "cancelled"}));
  ASSERT_TRUE(client().Reschedule({.event_id = "earlier", .requested = kNoon + kWindow}));
  for (const char* event : {"earlier", "later", "cancelled"}) {
    EXPECT_EQ(client().Look(event)->attempts, 1) << event;
  }
  EXPECT_EQ(client().Look("stays")->attempts, 0);
}

INSTANTIATE_TEST_SUITE_P(Stores, RestoredStore, testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
