// States of messages in the embedded gateway: dead letters, quiet hours.

#include "notify/sqlite/ledger.h"

#include <gmock/gmock.h>

#include <future>
#include <map>
#include <mutex>

#include "notify/sqlite/gateway.h"
#include "notify/sqlite/outbox_sender.h"
#include "notify/sqlite/sql.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace weir::notify::sqlite {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using weir::test::WaitUntil;

/// Refuses messages whose text begins with "bad" permanently, is never ready for "busy" ones, and
/// can be down.
class MoodyProvider final : public Provider {
 public:
  Status Deliver(const Event& event) override {
    const std::lock_guard lock(mutex_);
    if (away_) return Error{Code::kUnavailable, "away"};
    if (event.message.starts_with("busy")) return Error{Code::kUnavailable, "busy"};
    if (event.message.starts_with("bad") && strict_) return Error{Code::kInvalidArgument, "no"};
    delivered_.push_back(event.message);
    return {};
  }
  void Set(bool away, bool strict) {
    const std::lock_guard lock(mutex_);
    away_ = away;
    strict_ = strict;
  }
  std::vector<std::string> delivered() {
    const std::lock_guard lock(mutex_);
    return delivered_;
  }

 private:
  std::mutex mutex_;
  bool away_ = false;
  bool strict_ = true;
  std::vector<std::string> delivered_;
};

class EmbeddedLedger : public testing::Test {
 protected:
  EmbeddedLedger() {
    database_ = *weir::sqlite::Database::Open({.path = dir_ / "weir.db"});
    gateway_ = *SqliteGateway::Open(*database_, clock_, {}, [this] {
      if (sender_) sender_->Wake();
    });
    ledger_.emplace(*database_, clock_, [this](std::size_t gone, std::size_t queued) {
      if (sender_) sender_->ForgetDead(gone);
      gateway_->Requeued(queued);
      if (sender_) sender_->Wake();
    });
    Wait<UserLimit>([&](auto done) { gateway_->Configure({"u", 100, 1, 0, 0}, done); });
  }
  ~EmbeddedLedger() override {
    gateway_->Close();
    sender_.reset();
  }
  void StartSender() {
    sender_.emplace(
        *database_, provider_, clock_, [this](std::size_t events) { gateway_->Delivered(events); },
        SenderOptions{.retry = {.attempts = 3, .first_pause = milliseconds(1)},
                      .look_for_due = milliseconds(2)});
  }

  template <typename T, typename Call>
  T Wait(Call call) {
    std::promise<Result<T>> promise;
    call([&](Result<T> result) { promise.set_value(std::move(result)); });
    Result<T> result = promise.get_future().get();
    if (!result.ok()) throw std::runtime_error(result.error().message);
    return *std::move(result);
  }
  std::string Send(const std::string& message, const std::string& channel = "sms") {
    return Wait<SendAnswer>([&](auto done) {
             gateway_->Send({.user_id = "u", .message = message, .channel = channel}, done);
           })
        .event_id;
  }
  Message Find(const std::string& id) {
    return *Wait<std::optional<Message>>([&](auto done) { ledger_->Find(id, done); });
  }
  bool WaitForState(const std::string& id, MessageState state) {
    return WaitUntil([&] { return Find(id).state == state; });
  }
  std::vector<Message> List(MessageQuery query) {
    return Wait<std::vector<Message>>([&](auto done) { ledger_->List(query, done); });
  }
  std::vector<DeadMessage> Dead(const DeadQuery& query = {}) {
    return Wait<std::vector<DeadMessage>>([&](auto done) { ledger_->ListDead(query, done); });
  }
  void Wish(const Preferences& preferences) {
    Wait<Preferences>([&](auto done) { ledger_->PutPreferences(preferences, done); });
  }

  test::TempDir dir_;
  ManualClock clock_{1'767'323'045'000'000'000};  // 2026-01-02T03:04:05Z
  MoodyProvider provider_;
  std::unique_ptr<weir::sqlite::Database> database_;
  std::unique_ptr<SqliteGateway> gateway_;
  std::optional<SqliteLedger> ledger_;
  std::optional<OutboxSender> sender_;
};

TEST_F(EmbeddedLedger, AMessageIsQueuedThenSent) {
  const std::string id = Send("hello");
  EXPECT_EQ(Find(id).state, MessageState::kQueued);
  EXPECT_EQ(Find(id).accepted.at, 1'767'323'045'000'000);
  clock_.Advance(std::chrono::seconds(2));
  StartSender();
  ASSERT_TRUE(WaitForState(id, MessageState::kSent));
  EXPECT_EQ(Find(id).attempts, 1);
  EXPECT_EQ(Find(id).updated_at, 1'767'323'047'000'000);
  EXPECT_TRUE(WaitUntil([&] { return sender_->stats().count(DeliveryStats::kDelivered) == 1; }));
  EXPECT_FALSE((Wait<std::optional<Message>>([&](auto done) { ledger_->Find("none", done); })));
}

TEST_F(EmbeddedLedger, AProviderThatIsAwayDelaysMessagesAndNoneIsDead) {
  provider_.Set(true, true);
  std::vector<std::string> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(Send("hello"));
  StartSender();
  for (const std::string& id : ids) {
    ASSERT_TRUE(WaitUntil([&] { return Find(id).not_before > 0; }));
    EXPECT_EQ(Find(id).state, MessageState::kQueued);
    EXPECT_THAT(Find(id).last_error, testing::AnyOf("away", "the provider is down"));
  }
  EXPECT_EQ(Find(ids[0]).attempts, 3);
  EXPECT_LT(sender_->stats().retries(), 20U) << "not one after the other, while it is down";
  clock_.Advance(std::chrono::hours(1));
  ASSERT_TRUE(
      WaitUntil([&] { return Find(ids[0]).not_before > 1'767'323'045'000'000 + 3'600'000'000; }));
  provider_.Set(false, true);
  for (const std::string& id : ids) {
    ASSERT_TRUE(WaitUntil([&] {
      clock_.Advance(std::chrono::seconds(10));
      return Find(id).state == MessageState::kSent;
    }));
  }
  EXPECT_THAT(Dead(), IsEmpty());
  EXPECT_TRUE(WaitUntil([&] { return gateway_->outbox() == 0; }));
}

// As docs/reference/notify-api.md says: what is not an event cannot become one.
TEST_F(EmbeddedLedger, BytesThatAreNoEventAreKeptAndNotReplayed) {
  ASSERT_TRUE(database_
                  ->WriteAndWait([](weir::sqlite::Connection& connection) {
                    return connection.Execute("INSERT INTO notify_outbox(event) VALUES ('no')");
                  })
                  .ok());
  gateway_->Requeued(1);
  StartSender();
  ASSERT_TRUE(WaitUntil([&] { return Dead().size() == 1; }));
  const std::string id = Dead()[0].event_id;
  const auto replayed =
      Wait<std::vector<std::string>>([&](auto done) { ledger_->Replay({id}, done); });
  EXPECT_THAT(replayed, IsEmpty());
  ASSERT_THAT(Dead(), SizeIs(1));
  EXPECT_EQ(Dead()[0].event_id, id);
  EXPECT_THAT(Wait<std::vector<std::string>>([&](auto done) { ledger_->Drop({id}, done); }),
              ElementsAre(id));
}

TEST_F(EmbeddedLedger, WhatFailsWhileOthersAreDeliveredIsDead) {
  StartSender();
  const std::string busy = Send("busy");
  ASSERT_TRUE(WaitUntil([&] { return Find(busy).not_before > 0; }));
  const std::string fine = Send("fine");
  ASSERT_TRUE(WaitForState(fine, MessageState::kSent));
  clock_.Advance(std::chrono::minutes(1));
  ASSERT_TRUE(WaitForState(busy, MessageState::kDead));
  EXPECT_EQ(Find(busy).last_error, "busy");
}

TEST_F(EmbeddedLedger, AProviderThatIsAwayForADayMakesDeadLetters) {
  provider_.Set(true, true);
  const std::string id = Send("hello");
  StartSender();
  ASSERT_TRUE(WaitUntil([&] { return Find(id).not_before > 0; }));
  clock_.Advance(std::chrono::hours(25));
  ASSERT_TRUE(WaitForState(id, MessageState::kDead));
  EXPECT_EQ(Find(id).attempts, 3);
  EXPECT_EQ(Find(id).last_error, "away");
  ASSERT_THAT(Dead(), SizeIs(1));
  EXPECT_EQ(Dead()[0].event_id, id);
  EXPECT_THAT(Dead()[0].event, HasSubstr("hello"));
}

TEST_F(EmbeddedLedger, DeadLettersAreReplayedAndDropped) {
  StartSender();
  const std::string one = Send("bad one");
  const std::string two = Send("bad two");
  ASSERT_TRUE(WaitForState(one, MessageState::kDead) && WaitForState(two, MessageState::kDead));
  EXPECT_THAT(Dead({.limit = 1}), SizeIs(1));
  EXPECT_THAT(Dead({.user_id = "other"}), IsEmpty());
  provider_.Set(false, false);
  using Ids = std::vector<std::string>;
  EXPECT_THAT((Wait<Ids>([&](auto done) {
                ledger_->Replay({one, "unknown"}, done);
              })),
              ElementsAre(one));
  ASSERT_TRUE(WaitForState(one, MessageState::kSent));
  EXPECT_THAT(provider_.delivered(), ElementsAre("bad one"));
  const std::int64_t tried = Find(two).attempts;
  EXPECT_GT(tried, 0);
  EXPECT_THAT((Wait<Ids>([&](auto done) { ledger_->Drop({two}, done); })), ElementsAre(two));
  EXPECT_EQ(Find(two).state, MessageState::kDropped);
  EXPECT_EQ(Find(two).attempts, tried) << "nothing was tried since";
  EXPECT_EQ(Find(two).last_error, "no");
  EXPECT_THAT(Dead(), IsEmpty());
  EXPECT_TRUE(WaitUntil([&] { return sender_->dead_letters() == 0; }));
  EXPECT_TRUE(WaitUntil([&] { return gateway_->outbox() == 0; }));
}

TEST_F(EmbeddedLedger, ListsByUserAndStatePageByPage) {
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) {
    ids.push_back(Send("m"));
    clock_.Advance(std::chrono::seconds(1));
  }
  const auto first = List({.user_id = "u", .limit = 2});
  ASSERT_THAT(first, SizeIs(2));
  EXPECT_EQ(first[0].accepted.event_id, ids[4]) << "newest first";
  const auto second = List({.state = MessageState::kQueued,
                            .limit = 10,
                            .before_time = first[1].accepted.at,
                            .before_id = first[1].accepted.event_id});
  ASSERT_THAT(second, SizeIs(3));
  EXPECT_EQ(second[0].accepted.event_id, ids[2]);
  EXPECT_THAT(List({.user_id = "u", .state = MessageState::kSent}), IsEmpty());
}

TEST_F(EmbeddedLedger, QuietHoursDelayAndNeverDrop) {
  Wish({.user_id = "u", .quiet = QuietHours{0, 6 * 60, "UTC"}});
  const std::string id = Send("shh");
  StartSender();
  ASSERT_TRUE(WaitUntil([&] { return Find(id).not_before > 0; }));
  EXPECT_EQ(Find(id).state, MessageState::kQueued);
  EXPECT_EQ(Find(id).not_before, 1'767'333'600'000'000);  // 06:00
  EXPECT_EQ(gateway_->outbox(), 1U) << "it still waits";
  EXPECT_THAT(provider_.delivered(), IsEmpty());
  clock_.Advance(std::chrono::hours(3));
  ASSERT_TRUE(WaitForState(id, MessageState::kSent));
  EXPECT_THAT(provider_.delivered(), ElementsAre("shh"));
  EXPECT_EQ(Find(id).not_before, 0);
  EXPECT_TRUE(WaitUntil([&] { return gateway_->outbox() == 0; }));
}

TEST_F(EmbeddedLedger, WhatAClockThatWasAheadDelayedDoesNotWaitForThatTime) {
  const Nanos right = clock_.Now();
  Wish({.user_id = "u", .quiet = QuietHours{0, 6 * 60, "UTC"}});
  clock_.Advance(std::chrono::hours(24 * 365));
  const std::string id = Send("shh");
  StartSender();
  ASSERT_TRUE(WaitUntil([&] { return Find(id).not_before > 0; }));
  clock_.Set(right + std::chrono::nanoseconds(std::chrono::hours(9)).count());
  ASSERT_TRUE(WaitForState(id, MessageState::kSent));
}

TEST_F(EmbeddedLedger, WhoHasOptedOutOfAChannelGetsTheOthers) {
  Wish({.user_id = "u", .opted_out = {"sms"}});
  StartSender();
  const std::string sms = Send("by sms");
  const std::string mail = Send("by mail", "email");
  ASSERT_TRUE(WaitForState(sms, MessageState::kDropped));
  ASSERT_TRUE(WaitForState(mail, MessageState::kSent));
  EXPECT_THAT(Find(sms).last_error, HasSubstr("opted out"));
  EXPECT_THAT(provider_.delivered(), ElementsAre("by mail"));
  EXPECT_THAT(Dead(), IsEmpty());
}

TEST_F(EmbeddedLedger, UsersAreListedPageByPage) {
  for (const char* user : {"a", "z"}) {
    Wait<UserLimit>([&](auto done) { gateway_->Configure({user, 5, 1, 0, 0}, done); });
  }
  using Users = std::vector<UserLimit>;
  const Users first = Wait<Users>([&](auto done) { ledger_->ListUsers("", 2, done); });
  ASSERT_THAT(first, SizeIs(2));
  EXPECT_EQ(first[0].user_id, "a");
  const Users rest = Wait<Users>([&](auto done) { ledger_->ListUsers(first[1].user_id, 2, done); });
  ASSERT_THAT(rest, SizeIs(1));
  EXPECT_EQ(rest[0].user_id, "z");
}

// A file written by a release before states, with an event in the outbox and two dead letters.
TEST(EmbeddedLedgerUpgrade, MessagesOfBeforeHaveStates) {
  const test::TempDir dir;
  const auto event = [](const std::string& id) {
    return EncodeEvent({.id = id, .user_id = "u", .message = "m", .created_at = 1'000'000'000});
  };
  {
    auto database = *weir::sqlite::Database::Open({.path = dir / "weir.db"});
    ASSERT_TRUE(database->Migrate("notify", Migrations().first(1)).ok());
    ASSERT_TRUE(database
                    ->WriteAndWait([&](weir::sqlite::Connection& connection) {
                      const std::string sql =
                          "INSERT INTO notify_outbox(event) VALUES ('" + event("waits") +
                          "'); INSERT INTO notify_dead_letter(event, error, failed_at) VALUES ('" +
                          event("dead") + "', 'away', 7), ('no event', 'bad', 8)";
                      return connection.Execute(sql.c_str());
                    })
                    .ok());
  }
  auto database = *weir::sqlite::Database::Open({.path = dir / "weir.db"});
  auto gateway = *SqliteGateway::Open(*database, SystemClock::Get(), {}, [] {});
  SqliteLedger ledger(*database, SystemClock::Get(), [](std::size_t, std::size_t) {});
  std::map<std::string, MessageState> states;
  for (const char* id : {"waits", "dead"}) {
    std::promise<Message> promise;
    ledger.Find(id, [&](Result<std::optional<Message>> found) { promise.set_value(**found); });
    const Message message = promise.get_future().get();
    states[id] = message.state;
    EXPECT_EQ(message.accepted.at, 1'000'000'000) << id;
  }
  EXPECT_EQ(states["waits"], MessageState::kQueued);
  EXPECT_EQ(states["dead"], MessageState::kDead);
  std::promise<std::size_t> letters;
  ledger.ListDead(
      {}, [&](Result<std::vector<DeadMessage>> found) { letters.set_value(found->size()); });
  EXPECT_EQ(letters.get_future().get(), 2U);
  gateway->Close();
}

}  // namespace
}  // namespace weir::notify::sqlite
