#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "execution_fixture.h"

// Claims on the store itself write notes for the audit log, in the transaction of the claim.

namespace weir::slots {
namespace {

constexpr Millis kMinute = kNoon - kNoon % kNoteMillis;
constexpr Millis kLater = kMinute + 3 * kNoteMillis;  // the minute's notes are final

class ClaimNotes : public Execution {
 protected:
  std::size_t ClaimAs(const std::string& by, Millis now, std::size_t max, bool noted = true) {
    return client()
        .Claim({.config = "pay", .max = max, .lease = kLease, .by = by, .noted = noted, .now = now})
        .events.size();
  }
};

TEST_P(ClaimNotes, ClaimsOfOneCallerWithinAMinuteAreOneNote) {
  client().Put(Pay(100));
  client().Assign(Asks(10, kNoon));
  EXPECT_EQ(ClaimAs("d1", kNoon + kWindow, 3), 3U);
  EXPECT_EQ(ClaimAs("d1", kNoon + kWindow + 5, 2), 2U);
  EXPECT_EQ(ClaimAs("d2", kNoon + kWindow + 9, 100), 5U);
  EXPECT_EQ(ClaimAs("d2", kNoon + kWindow + 10, 100), 0U);
  const std::vector<ClaimNote> notes = client().Notes(kLater);
  EXPECT_EQ(notes, (std::vector<ClaimNote>{{kMinute, "pay", "d1", 5}, {kMinute, "pay", "d2", 5}}));
}

TEST_P(ClaimNotes, NothingIsNotedForWhoHasAnAuditLog) {
  client().Put(Pay(100));
  client().Assign(Asks(3, kNoon));
  EXPECT_EQ(ClaimAs("service", kNoon + kWindow, 3, false), 3U);
  EXPECT_TRUE(client().Notes(kLater).empty());
}

TEST_P(ClaimNotes, AMinuteThatIsNotOverForSureIsNotGiven) {
  client().Put(Pay(100));
  client().Assign(Asks(3, kNoon));
  ClaimAs("d1", kNoon + kWindow, 3);
  EXPECT_TRUE(client().Notes(kMinute + 2 * kNoteMillis - 1).empty());
  EXPECT_EQ(client().Notes(kMinute + 2 * kNoteMillis).size(), 1U);
}

TEST_P(ClaimNotes, ATakenNoteIsGivenAgainAfterAMinuteUnlessItIsForgotten) {
  client().Put(Pay(100));
  client().Assign(Asks(3, kNoon));
  ClaimAs("d1", kNoon + kWindow, 2);
  const std::vector<ClaimNote> notes = client().Notes(kLater);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_TRUE(client().Notes(kLater + 1).empty()) << "somebody else is writing it";
  EXPECT_EQ(client().Notes(kLater + kNoteMillis), notes) << "whoever took it is gone";
  EXPECT_EQ(client().Forget(notes), 1U);
  EXPECT_EQ(client().Forget(notes), 0U);
  EXPECT_TRUE(client().Notes(kLater + 9 * kNoteMillis).empty());
}

TEST_P(ClaimNotes, ANoteThatHasGrownIsNotForgotten) {
  client().Put(Pay(100));
  client().Assign(Asks(3, kNoon));
  ClaimAs("d1", kNoon + kWindow, 2);
  const std::vector<ClaimNote> notes = client().Notes(kLater);
  ClaimAs("d1", kNoon + kWindow + 1, 1);  // a clock that was set back
  EXPECT_EQ(client().Forget(notes), 0U);
  EXPECT_EQ(client().Notes(kLater + kNoteMillis).at(0).events, 3);
}

INSTANTIATE_TEST_SUITE_P(Stores, ClaimNotes, testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
