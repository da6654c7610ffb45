// The ledger on a real PostgreSQL: reports in any order, replays that fail half-way, delays.

#include "notify/postgres/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "notify/postgres/sql.h"
#include "support/postgres_server.h"
#include "support/wait.h"

namespace weir::notify::postgres {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

/// Confirms, or not, as scripted; the broker itself is part of tests/fault/notify.
class ScriptedPublisher final : public Publisher {
 public:
  void Publish(Event event, Done done) override {
    if (before) before();
    if (away) return done(Error{Code::kUnavailable, "away"});
    published.push_back(event.id);
    done({});
  }
  bool away = false;
  std::function<void()> before;
  std::vector<std::string> published;
};

class PostgresLedgerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<weir::test::PostgresServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  void Open() {
    ledger_.reset();
    LedgerOptions options;
    options.url = server_->url();
    options.ping_interval = std::chrono::milliseconds(20);
    options.counts = true;
    ledger_ = std::make_unique<PostgresLedger>(options, &publisher_, clock_);
  }
  void SetUp() override {
    Open();
    ASSERT_TRUE(weir::test::WaitUntil([&] { return ledger_->up(); }));
    server_->Query("TRUNCATE notify_message, notify_dead_letter, notify_delayed, notify_sender");
  }

  template <typename T, typename Call>
  T Wait(Call call) {
    std::promise<Result<T>> promise;
    call([&](Result<T> result) { promise.set_value(std::move(result)); });
    Result<T> result = promise.get_future().get();
    if (!result.ok()) throw std::runtime_error(result.error().message);
    return *std::move(result);
  }
  static Delivery End(const std::string& id, MessageState state, const std::string& error = {}) {
    Delivery end{.event = {.id = id, .user_id = "u", .message = "m", .created_at = 5'000'000},
                 .state = state,
                 .attempts = 2,
                 .error = error};
    end.payload = EncodeEvent(end.event);
    return end;
  }
  void Report(const std::vector<Delivery>& ends) {
    const Status reported = ledger_->Report(ends);
    ASSERT_TRUE(reported.ok()) << reported.error().message;
  }
  Message Find(const std::string& id) {
    return Wait<std::optional<Message>>([&](auto done) { ledger_->Find(id, done); }).value();
  }
  MessageState StateOf(const std::string& id) { return Find(id).state; }
  std::vector<std::string> DeadIds() {
    std::vector<std::string> ids;
    for (const DeadMessage& dead : Wait<std::vector<DeadMessage>>(
             [&](auto done) { ledger_->ListDead({.limit = 100}, done); })) {
      ids.push_back(dead.event_id);
    }
    return ids;
  }
  std::vector<std::string> Replay(const std::vector<std::string>& ids) {
    return Wait<std::vector<std::string>>([&](auto done) { ledger_->Replay(ids, done); });
  }

  static std::unique_ptr<weir::test::PostgresServer> server_;
  ManualClock clock_{1'767'323'045'000'000'000};
  ScriptedPublisher publisher_;
  std::unique_ptr<PostgresLedger> ledger_;
};
std::unique_ptr<weir::test::PostgresServer> PostgresLedgerTest::server_;

TEST_F(PostgresLedgerTest, WhatWasSentStaysSentWhateverIsReportedLater) {
  Report({End("a", MessageState::kFailed, "away"), End("b", MessageState::kDead, "no")});
  EXPECT_EQ(StateOf("a"), MessageState::kFailed);
  Report({End("a", MessageState::kSent), End("b", MessageState::kSent)});
  Report({End("a", MessageState::kDead, "late"), End("b", MessageState::kFailed)});
  EXPECT_EQ(StateOf("a"), MessageState::kSent);
  EXPECT_EQ(StateOf("b"), MessageState::kSent);
  EXPECT_THAT(DeadIds(), IsEmpty()) << "a letter of a message that was sent";
  EXPECT_THAT(*ledger_->Settled(std::vector<std::string>{"a", "b", "c"}),
              UnorderedElementsAre("a", "b"));
}

TEST_F(PostgresLedgerTest, WhatWasDroppedIsNotDeliveredWhenTheTopicBringsItAgain) {
  Report({End("a", MessageState::kDead, "no"), End("b", MessageState::kDropped, "opted out")});
  EXPECT_THAT(Wait<std::vector<std::string>>([&](auto done) { ledger_->Drop({"a"}, done); }),
              ElementsAre("a"));
  EXPECT_EQ(Find("a").state, MessageState::kDropped);
  EXPECT_EQ(Find("a").attempts, 2) << "nothing was tried since";
  EXPECT_THAT(*ledger_->Settled(std::vector<std::string>{"a", "b"}),
              UnorderedElementsAre("a", "b"));
}

TEST_F(PostgresLedgerTest, AReportNamesAMessageOnceEvenIfItIsInTheBatchTwice) {
  Report({End("a", MessageState::kSent), End("a", MessageState::kSent)});
  EXPECT_EQ(StateOf("a"), MessageState::kSent);
}

TEST_F(PostgresLedgerTest, BytesThatAreNoEventAreKeptAndNotReplayed) {
  Delivery bad{.event = {.id = "partition-0-offset-7", .user_id = {}, .message = {}},
               .state = MessageState::kDead,
               .error = "no"};
  bad.payload = std::string("\xFF\0x", 3);
  Report({bad});
  EXPECT_THAT(DeadIds(), ElementsAre("partition-0-offset-7"));
  EXPECT_THAT(Replay({"partition-0-offset-7"}), IsEmpty());
  EXPECT_THAT(DeadIds(), SizeIs(1));
}

TEST_F(PostgresLedgerTest, WhatCannotBeReplayedCanBeLeftOut) {
  Delivery bytes = End("partition-0-offset-1", MessageState::kDead, "malformed");
  bytes.event.user_id.clear();
  bytes.payload = "no event";
  Report({bytes, End("a", MessageState::kDead, "no")});
  const auto ids = [&](DeadQuery query) {
    std::vector<std::string> found;
    for (const DeadMessage& dead :
         Wait<std::vector<DeadMessage>>([&](auto done) { ledger_->ListDead(query, done); })) {
      found.push_back(dead.event_id);
    }
    return found;
  };
  EXPECT_THAT(ids({}), UnorderedElementsAre("a", "partition-0-offset-1"));
  EXPECT_THAT(ids({.events_only = true}), ElementsAre("a"));
  EXPECT_THAT(ids({.user_id = "u", .events_only = true}), ElementsAre("a"));
}

TEST_F(PostgresLedgerTest, DeadLettersAreCounted) {
  Report({End("a", MessageState::kDead, "no"), End("b", MessageState::kDead, "no"),
          End("c", MessageState::kSent)});
  EXPECT_TRUE(weir::test::WaitUntil([&] { return ledger_->dead_letters() == 2; }));
  EXPECT_THAT(Replay({"a"}), ElementsAre("a"));
  EXPECT_TRUE(weir::test::WaitUntil([&] { return ledger_->dead_letters() == 1; }));
}

TEST_F(PostgresLedgerTest, AReplayQueuesPublishesAndForgets) {
  Report({End("a", MessageState::kDead, "no"), End("b", MessageState::kDead, "no")});
  EXPECT_THAT(Replay({"a", "unknown"}), ElementsAre("a"));
  EXPECT_THAT(publisher_.published, ElementsAre("a"));
  EXPECT_EQ(StateOf("a"), MessageState::kQueued);
  EXPECT_THAT(DeadIds(), ElementsAre("b"));
}

TEST_F(PostgresLedgerTest, AReplayThatTheBrokerDoesNotTakeLeavesThemDead) {
  Report({End("a", MessageState::kDead, "no")});
  publisher_.away = true;
  EXPECT_THROW(Replay({"a"}), std::runtime_error);
  EXPECT_TRUE(weir::test::WaitUntil([&] { return StateOf("a") == MessageState::kDead; }));
  EXPECT_EQ(Find("a").attempts, 2);
  publisher_.away = false;
  EXPECT_TRUE(weir::test::WaitUntil([&] { return Replay({"a"}).size() == 1; }));
}

// The sender is faster than the end of the replay: the message fails again, and must be kept.
TEST_F(PostgresLedgerTest, AMessageThatDiesAgainDuringItsReplayIsKept) {
  Report({End("a", MessageState::kDead, "no")});
  PostgresLedger sender({.url = server_->url()}, nullptr, clock_);
  publisher_.before = [&] {
    const std::vector<Delivery> again = {End("a", MessageState::kDead, "again")};
    ASSERT_TRUE(std::async(std::launch::async, [&] { return sender.Report(again); }).get().ok());
  };
  Replay({"a"});
  EXPECT_EQ(StateOf("a"), MessageState::kDead);
  EXPECT_THAT(DeadIds(), ElementsAre("a"));
}

TEST_F(PostgresLedgerTest, WhatAProcessThatDiedHadClaimedIsDeadAgain) {
  Report({End("a", MessageState::kDead, "no")});
  server_->Query("UPDATE notify_dead_letter SET taken_until = 1767323045000001");
  server_->Query("UPDATE notify_message SET state = 0, attempts = 0");
  EXPECT_THAT(Replay({"a"}), IsEmpty()) << "somebody else has it";
  clock_.Advance(std::chrono::minutes(2));
  EXPECT_TRUE(weir::test::WaitUntil([&] { return StateOf("a") == MessageState::kDead; }));
  EXPECT_EQ(Find("a").attempts, 2);
  EXPECT_THAT(Replay({"a"}), ElementsAre("a"));
}

TEST_F(PostgresLedgerTest, DelayedEventsAreTakenOnceTheirTimeHasCome) {
  const Micros now = NowMicros(clock_);
  Delivery later = End("a", MessageState::kQueued);
  later.not_before = now + 1000;
  Report({later});
  EXPECT_THAT(ledger_->TakeDue(now, 10)->events, IsEmpty());
  const DeliveryLog::Due due = *ledger_->TakeDue(now + 1000, 10);
  EXPECT_THAT(due.events, ElementsAre(later.payload));
  EXPECT_THAT(ledger_->TakeDue(now + 1000, 10)->events, IsEmpty()) << "it is leased";
  // Delayed again before it was removed: then it is kept.
  later.not_before = now + 500'000'000;
  Report({later});
  ASSERT_TRUE(ledger_->Forget(std::vector<std::string>{"a"}, due.lease).ok());
  const DeliveryLog::Due again = *ledger_->TakeDue(now + 600'000'000, 10);
  EXPECT_THAT(again.events, SizeIs(1));
  ASSERT_TRUE(ledger_->Forget(std::vector<std::string>{"a"}, again.lease).ok());
  EXPECT_THAT(ledger_->TakeDue(now + 9'000'000'000, 10)->events, IsEmpty());
}

TEST_F(PostgresLedgerTest, WhatAClockThatWasAheadDelayedIsTaken) {
  const Micros now = NowMicros(clock_);
  Delivery quiet = End("a", MessageState::kQueued);
  quiet.not_before = now + kLongestDelay;
  Delivery stray = End("b", MessageState::kQueued);
  stray.not_before = now + 365 * kLongestDelay;
  Report({quiet, stray});
  EXPECT_THAT(ledger_->TakeDue(now, 10)->events, ElementsAre(stray.payload));
}

TEST_F(PostgresLedgerTest, WhatSendersHaveDoneAddsUpAlsoWhenTheyAreGone) {
  const auto sums = [&](std::int64_t delivered, std::int64_t lag, std::int64_t running) {
    return weir::test::WaitUntil([&] {
      const SenderFigures all = ledger_->senders();
      return all.delivered == delivered && all.lag == lag && all.senders == running;
    });
  };
  ledger_->NoteSender("a", {.delivered = 3, .retries = 2, .timed = 3, .took = 900, .lag = 7});
  ledger_->NoteSender("b", {.delivered = 10, .timed = 1, .took = 100, .lag = 1});
  EXPECT_TRUE(sums(13, 8, 2));
  EXPECT_EQ(ledger_->senders().retries, 2);
  EXPECT_EQ(ledger_->senders().mean_time(), 250);  // (900 + 100) / (3 + 1)
  // A report replaces the previous one.
  ledger_->NoteSender("a", {.delivered = 5, .lag = 2});
  EXPECT_TRUE(sums(15, 3, 2));
  // a ends and b is killed: the queue's length is unknown, and their counts stay.
  ledger_->NoteSender("a", {.delivered = 6, .senders = 0});
  EXPECT_TRUE(sums(16, 1, 1));
  server_->Query("UPDATE notify_sender SET seen_at = seen_at - 20000000 WHERE sender = 'b'");
  EXPECT_TRUE(sums(16, 0, 0));
  // A week later both are merged into one row.
  server_->Query("UPDATE notify_sender SET seen_at = 1 WHERE sender = 'b'");
  EXPECT_TRUE(weir::test::WaitUntil([&] {
    return server_->Query("SELECT string_agg(sender, ',') || count(*) FROM notify_sender") == "1";
  }));
  ledger_->NoteSender("c", {.delivered = 4});
  EXPECT_TRUE(sums(20, 0, 1));
}

// Without a sender that reports, messages stay queued: they must not stay forever.
TEST_F(PostgresLedgerTest, OldMessagesAreSweptInAnyStateButDeadOnes) {
  for (const char* state : {"0", "1", "2", "3", "4"}) {
    server_->Query(std::string("INSERT INTO notify_message(event_id, user_id, channel, recipient, "
                               "state, accepted_at, updated_at) VALUES ('old-") +
                   state + "', 'u', 'sms', '', " + state + ", 5, 5), ('new-" + state +
                   "', 'u', 'sms', '', " + state + ", 50, 50)");
  }
  std::string sweep = kSweepMessages;
  sweep.replace(sweep.find("$1"), 2, "5");
  sweep.replace(sweep.find("$2"), 2, "10");
  server_->Query(sweep);
  EXPECT_EQ(
      server_->Query("SELECT string_agg(event_id, ' ' ORDER BY event_id) FROM notify_message"),
      "new-0 new-1 new-2 new-3 new-4 old-3");
}

TEST_F(PostgresLedgerTest, ADatabaseThatIsAwayIsToldAndComesBack) {
  server_->Crash();
  EXPECT_TRUE(weir::test::WaitUntil([&] { return !ledger_->up(); }));
  EXPECT_FALSE(ledger_->Report(std::vector<Delivery>{End("a", MessageState::kSent)}).ok());
  server_->Start();
  EXPECT_TRUE(weir::test::WaitUntil([&] { return ledger_->up(); }));
}

}  // namespace
}  // namespace weir::notify::postgres
