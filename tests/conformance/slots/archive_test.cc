#include <gmock/gmock.h>

#include <functional>
#include <stdexcept>

#include "slots/config.h"
#include "slots/retention.h"
#include "store_fixture.h"
#include "support/wait.h"

// Old events leave the live tables, on every store; answers about them stay the same.

namespace weir::slots {
namespace {

constexpr Millis kNoon = 1'748'779'200'000;  // 2025-06-01T12:00:00Z
constexpr Millis kFar = 4'000'000'000'000;   // later than anything here ends

class Archive : public StoreTest {
 protected:
  // Creates `count` events and executes them all.
  void Done(int count) {
    client().Put({.name = "pay", .window_size = 4'000, .max_per_window = 100});
    client().Assign(Asks(count, kNoon));
    std::vector<Finish> ends;
    for (const Claimed& event :
         client().Claim({.config = "pay", .max = 1'000, .now = kNoon + 4'000}).events) {
      ends.push_back({.event_id = event.slot.event_id, .attempt = event.attempt});
    }
    ASSERT_EQ(ends.size(), static_cast<std::size_t>(count));
    client().Finish(ends);
  }
};

std::string Refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

TEST_P(Archive, DoneEventsLeaveInSmallSets) {
  Done(25);
  const Slot slot = *client().Find("e7");
  const auto live = [&] {
    return client().Due({.config = "pay", .before = kFar, .state = State::kDone}).size();
  };
  for (const std::size_t left : {15U, 5U, 0U}) {
    EXPECT_EQ(client().Retire({.over_before = kFar, .limit = 10}).archived, left == 0 ? 5U : 10U);
    EXPECT_EQ(live(), left);
    EXPECT_EQ(client().Verify().problems, 0);  // the counters still add up
  }
  EXPECT_EQ(client().Retire({.over_before = kFar, .limit = 10}).archived, 0U);
  const Event event = *client().Look("e7");
  EXPECT_TRUE(event.archived);
  EXPECT_EQ(event.state, State::kDone);
  EXPECT_EQ(event.slot, slot);
  EXPECT_EQ(event.attempts, 1);
  EXPECT_GT(event.finished_at, 0);
}

TEST_P(Archive, OnlyWhatIsOverAndOldLeaves) {
  Done(5);
  client().Assign(Asks(5, kNoon + 60'000, "later"));
  const Millis finished = client().Look("e0")->finished_at;
  EXPECT_EQ(client().Retire({.over_before = finished}).archived, 0U);
  EXPECT_EQ(client().Retire({.over_before = kFar}).archived, 5U);
  EXPECT_FALSE(client().Look("later0")->archived);
}

TEST_P(Archive, AnIdInTheArchiveIsAnsweredAsBefore) {
  Done(3);
  client().Assign(client().Ask("gone", "pay", kNoon + 60'000));
  client().Cancel("gone");
  EXPECT_EQ(client().Retire({.over_before = kFar}).archived, 4U);
  const Answer again = client().Assign(client().Ask("e1", "pay", kNoon));
  EXPECT_EQ(again.outcome, Outcome::kExisting);
  EXPECT_EQ(again.slot.config, "pay");
  EXPECT_EQ(client().Assign(client().Ask("e1", "pay", kNoon + 1)).outcome, Outcome::kConflict);
  EXPECT_EQ(client().Assign(client().Ask("e1", "pay", kNoon, "acme")).outcome, Outcome::kConflict);
  Ask with_payload = client().Ask("e1", "pay", kNoon);
  with_payload.payload = "10 EUR";
  EXPECT_EQ(client().Assign(with_payload).outcome, Outcome::kExisting) << "payloads are not kept";
  EXPECT_EQ(client().Assign(client().Ask("gone", "pay", kNoon + 60'000)).outcome,
            Outcome::kCancelled);
  EXPECT_EQ(client().Assign(client().Ask("gone", "pay", kNoon)).outcome, Outcome::kConflict);
  // A batch of old and new ones.
  const auto mixed = client().Assign(
      std::vector{client().Ask("e2", "pay", kNoon), client().Ask("fresh", "pay", kNoon)});
  EXPECT_EQ(mixed[0].outcome, Outcome::kExisting);
  EXPECT_EQ(mixed[1].outcome, Outcome::kNew);
  // Cancelling twice is the same as once; an archived event cannot be revived.
  EXPECT_EQ(client().Cancel("gone")->requested, kNoon + 60'000);
  EXPECT_EQ(Refusal([&] { client().Restore({.event_id = "gone"}); }), "CANCELLED and archived");
  // It is over: it can be neither cancelled nor moved.
  EXPECT_EQ(Refusal([&] { client().Cancel("e1"); }), "DONE and archived");
  EXPECT_EQ(Refusal([&] { client().Reschedule({.event_id = "e1", .requested = kNoon}); }),
            "DONE and archived");
}

TEST_P(Archive, IdsAreForgottenAfterTheHorizon) {
  Done(3);
  client().Retire({.over_before = kFar});
  EXPECT_EQ(client().Retire({.archived_before = 1}).dropped, 0U);
  EXPECT_EQ(client().Retire({.archived_before = kFar, .limit = 2}).dropped, 2U);
  EXPECT_EQ(client().Retire({.archived_before = kFar, .limit = 2}).dropped, 1U);
  EXPECT_FALSE(client().Look("e1"));
  EXPECT_EQ(client().Assign(client().Ask("e1", "pay", kNoon)).outcome, Outcome::kNew);
}

// A feed may send it again at any time before its execution time.
TEST_P(Archive, TheIdOfACancelledEventIsKeptBeyondItsTime) {
  constexpr Millis kNewYear = 1'893'456'000'000;  // 2030-01-01T00:00:00Z
  constexpr Millis kDay = 86'400'000;
  client().Put({.name = "pay", .window_size = 4'000, .max_per_window = 100});
  client().Assign(client().Ask("e", "pay", kNewYear));
  client().Cancel("e");
  const Millis cancelled = client().Look("e")->finished_at;
  EXPECT_EQ(client().Retire({.over_before = cancelled + kDay}).archived, 1U);
  EXPECT_EQ(client().Retire({.archived_before = cancelled + kDay}).dropped, 0U);
  EXPECT_EQ(client().Assign(client().Ask("e", "pay", kNewYear)).outcome, Outcome::kCancelled);
  EXPECT_EQ(client().Retire({.archived_before = kNewYear + kDay}).dropped, 1U);
}

TEST_P(Archive, DeadLettersStay) {
  client().Put({.name = "pay", .window_size = 4'000, .max_per_window = 100});
  client().Assign(Asks(1, kNoon));
  client().Claim({.config = "pay", .max = 1, .now = kNoon + 4'000});
  Finish end{.event_id = "e0", .attempt = 1};
  end.failed = true;
  client().Finish({end});
  EXPECT_EQ(client().Retire({.over_before = kFar}).archived, 0U);
  client().Cancel("e0");  // given up
  EXPECT_EQ(client().Retire({.over_before = kFar}).archived, 1U);
  EXPECT_EQ(client().Verify().problems, 0);
}

TEST_P(Archive, ASecondlyTickRetiresUntilNothingIsLeft) {
  Done(25);
  Retirement retirement(store(), {.keep = std::chrono::hours(1)});
  const Nanos later = kFar * 1'000'000;
  retirement.OnSecond(later);
  ASSERT_TRUE(test::WaitUntil([&] { return retirement.archived() == 25; }));
}

INSTANTIATE_TEST_SUITE_P(Stores, Archive, testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
