#include "notify/sqlite/gateway.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <mutex>

#include "notify/sqlite/outbox_sender.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace weir::notify::sqlite {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using weir::test::WaitUntil;

/// Records what it delivers, and fails as often as it is told to.
class FakeProvider final : public Provider {
 public:
  Status Deliver(const Event& event) override {
    const std::lock_guard lock(mutex_);
    ++attempts_;
    if (failures_ > 0) {
      --failures_;
      return Error{code_, "no signal"};
    }
    messages_.push_back(event.message);
    return {};
  }
  void Fail(int times, Code code) {
    const std::lock_guard lock(mutex_);
    failures_ = times;
    code_ = code;
  }
  std::vector<std::string> messages() {
    const std::lock_guard lock(mutex_);
    return messages_;
  }
  int attempts() {
    const std::lock_guard lock(mutex_);
    return attempts_;
  }

 private:
  std::mutex mutex_;
  int failures_ = 0;
  int attempts_ = 0;
  Code code_ = Code::kUnavailable;
  std::vector<std::string> messages_;
};

class EmbeddedGateway : public testing::Test {
 protected:
  EmbeddedGateway() { Open({}); }
  ~EmbeddedGateway() override { Close(); }

  void Open(Options options) {
    auto database = weir::sqlite::Database::Open({.path = dir_ / "weir.db"});
    database_ = std::move(*database);
    auto gateway = SqliteGateway::Open(*database_, clock_, options, [this] {
      if (sender_) sender_->Wake();
    });
    gateway_ = std::move(*gateway);
  }
  void StartSender() {
    sender_.emplace(
        *database_, provider_, clock_, [this](std::size_t events) { gateway_->Delivered(events); },
        SenderOptions{
            .retry = {.attempts = 3, .first_pause = milliseconds(1), .patience = milliseconds(0)}});
  }
  void Close() {
    gateway_->Close();
    sender_.reset();
    gateway_.reset();
    database_.reset();
  }

  UserLimit Configure(const std::string& user, std::int64_t limit, std::int64_t minutes) {
    std::promise<Result<UserLimit>> promise;
    gateway_->Configure({user, limit, minutes, 0, 0},
                        [&](Result<UserLimit> saved) { promise.set_value(std::move(saved)); });
    return *promise.get_future().get();
  }
  UserLimit Adjust(const std::string& user, std::int64_t limit, std::int64_t minutes) {
    std::promise<Result<UserLimit>> promise;
    gateway_->Adjust({user, limit, minutes, 0, 0},
                     [&](Result<UserLimit> saved) { promise.set_value(std::move(saved)); });
    return *promise.get_future().get();
  }
  Result<SendAnswer> Send(const SendRequest& request) {
    std::promise<Result<SendAnswer>> promise;
    gateway_->Send(request, [&](Result<SendAnswer> sent) { promise.set_value(std::move(sent)); });
    return promise.get_future().get();
  }
  UserLimit Find(const std::string& user) {
    std::promise<Result<std::optional<UserLimit>>> promise;
    gateway_->Find(user, [&](auto row) { promise.set_value(std::move(row)); });
    return **promise.get_future().get();
  }

  test::TempDir dir_;
  ManualClock clock_{1'000'000'000'000};
  FakeProvider provider_;
  std::unique_ptr<weir::sqlite::Database> database_;
  std::unique_ptr<SqliteGateway> gateway_;
  std::optional<OutboxSender> sender_;
};

TEST_F(EmbeddedGateway, SendsUpToTheLimitAndAgainInTheNextWindow) {
  EXPECT_EQ(Configure("u", 2, 1).last_refresh_time, 1'000'000'000);
  EXPECT_EQ(Send({"u", "a"})->remaining, 1);
  EXPECT_EQ(Send({"u", "b"})->outcome, Outcome::kSent);
  const Result<SendAnswer> limited = Send({"u", "c"});
  EXPECT_EQ(limited->outcome, Outcome::kLimited);
  EXPECT_EQ(limited->resets_at, 1'060'000'000);
  clock_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(Send({"u", "d"})->outcome, Outcome::kSent);
  EXPECT_EQ(Find("u").current_count, 1);
  EXPECT_EQ(Send({"nobody", "d"})->outcome, Outcome::kUnknownUser);
}

TEST_F(EmbeddedGateway, AnAdjustedLimitKeepsItsWindowAndCount) {
  EXPECT_EQ(Adjust("u", 2, 10), (UserLimit{"u", 2, 10, 0, 1'000'000'000})) << "there was none";
  EXPECT_EQ(Send({"u", "a"})->outcome, Outcome::kSent);
  EXPECT_EQ(Send({"u", "b"})->outcome, Outcome::kSent);
  clock_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(Adjust("u", 2, 10), (UserLimit{"u", 2, 10, 2, 1'000'000'000}));
  EXPECT_EQ(Send({"u", "c"})->outcome, Outcome::kLimited);
  EXPECT_EQ(Adjust("u", 3, 20), (UserLimit{"u", 3, 20, 2, 1'000'000'000}));
  EXPECT_EQ(Send({"u", "d"})->resets_at, 2'200'000'000) << "20 minutes after the start";
  EXPECT_EQ(Send({"u", "e"})->outcome, Outcome::kLimited);
  Adjust("u", 3, 1);  // the window has lasted for a minute, so it is over
  EXPECT_EQ(Send({"u", "f"})->remaining, 2);
}

TEST_F(EmbeddedGateway, AChannelMayHaveALimitOfItsOwn) {
  const auto on = [this](const char* channel) {
    return *Send({.user_id = "u", .message = "m", .channel = channel});
  };
  Configure("u", 4, 1);
  const std::string email = ChannelKey("u", "email");
  Configure(email, 2, 10);
  EXPECT_EQ(on("email").remaining, 1);
  EXPECT_EQ(on("email").remaining, 0);
  const SendAnswer refused = on("email");
  EXPECT_EQ(refused.outcome, Outcome::kLimited);
  EXPECT_TRUE(refused.of_channel);
  EXPECT_EQ(refused.rate_limit, 2);
  EXPECT_EQ(on("sms").outcome, Outcome::kSent);
  EXPECT_EQ(Find("u").current_count, 3) << "what the channel refused counts nowhere";
  clock_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(on("email").outcome, Outcome::kLimited) << "its window is longer";
  EXPECT_EQ(Find(email).current_count, 2);
}

TEST_F(EmbeddedGateway, AUserWhoseLimitIsTakenAwayIsUnknown) {
  const auto remove = [this](const std::string& user) {
    std::promise<Result<bool>> promise;
    gateway_->Remove(user, [&](Result<bool> removed) { promise.set_value(std::move(removed)); });
    return *promise.get_future().get();
  };
  Configure("u", 2, 1);
  Configure("v", 2, 1);
  EXPECT_TRUE(remove("u"));
  EXPECT_FALSE(remove("u"));
  EXPECT_EQ(Send({"u", "a"})->outcome, Outcome::kUnknownUser);
  EXPECT_EQ(Send({"v", "a"})->outcome, Outcome::kSent);
}

TEST_F(EmbeddedGateway, DeliversWhatWasSentInOrderAndEmptiesTheOutbox) {
  StartSender();
  Configure("u", 3, 1);
  for (const char* message : {"a", "b", "c"}) ASSERT_TRUE(Send({"u", message}).ok());
  ASSERT_TRUE(WaitUntil([&] { return provider_.messages().size() == 3; }));
  EXPECT_THAT(provider_.messages(), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(WaitUntil([&] { return gateway_->outbox() == 0; }));
}

TEST_F(EmbeddedGateway, DeliversAfterARestartWhatWasSentBefore) {
  Configure("u", 3, 1);
  ASSERT_TRUE(Send({"u", "a"}).ok());
  Close();
  Open({});
  EXPECT_EQ(gateway_->outbox(), 1U);
  EXPECT_EQ(Find("u").current_count, 1);
  StartSender();
  EXPECT_TRUE(WaitUntil([&] { return provider_.messages().size() == 1; }));
}

TEST_F(EmbeddedGateway, TriesAgainAndThenKeepsADeadLetter) {
  StartSender();
  Configure("u", 9, 1);
  provider_.Fail(2, Code::kUnavailable);  // the third of three attempts succeeds
  ASSERT_TRUE(Send({"u", "late"}).ok());
  ASSERT_TRUE(WaitUntil([&] { return provider_.messages().size() == 1; }));
  provider_.Fail(3, Code::kUnavailable);
  ASSERT_TRUE(Send({"u", "lost"}).ok());
  ASSERT_TRUE(WaitUntil([&] { return sender_->dead_letters() == 1; }));
  const int attempts = provider_.attempts();
  provider_.Fail(1, Code::kInvalidArgument);  // retrying cannot help
  ASSERT_TRUE(Send({"u", "wrong"}).ok());
  ASSERT_TRUE(WaitUntil([&] { return sender_->dead_letters() == 2; }));
  EXPECT_EQ(provider_.attempts(), attempts + 1);
  EXPECT_THAT(provider_.messages(), ElementsAre("late"));
  // Reported by the sender right after it counts a dead letter.
  EXPECT_TRUE(WaitUntil([&] { return gateway_->outbox() == 0U; }));
}

TEST_F(EmbeddedGateway, AnswersARepeatedKeyAsTheFirst) {
  Configure("u", 5, 1);
  const Result<SendAnswer> first = Send({"u", "m", "k"});
  const Result<SendAnswer> again = Send({"u", "m", "k"});
  EXPECT_EQ(again->event_id, first->event_id);
  EXPECT_EQ(again->remaining, 4);
  EXPECT_TRUE(again->replayed);
  EXPECT_EQ(Send({"u", "other", "k"})->outcome, Outcome::kKeyReused);
  EXPECT_EQ(Find("u").current_count, 1);
  EXPECT_EQ(gateway_->outbox(), 1U);
  clock_.Advance(std::chrono::hours(24));
  EXPECT_NE(Send({"u", "m", "k"})->event_id, first->event_id);
}

TEST_F(EmbeddedGateway, RefusesWhenTheOutboxIsFull) {
  Close();
  Open({.max_outbox = 2});
  Configure("u", 5, 1);
  ASSERT_TRUE(Send({"u", "a"}).ok());
  ASSERT_TRUE(Send({"u", "b"}).ok());
  const Result<SendAnswer> refused = Send({"u", "c"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_EQ(Find("u").current_count, 2);
}

TEST_F(EmbeddedGateway, OfManyAtOnceExactlyTheLimitIsSent) {
  Configure("u", 100, 1);
  std::atomic<int> sent{0};
  std::atomic<int> limited{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        gateway_->Send({"u", "m"}, [&](Result<SendAnswer> answer) {
          ++(answer->outcome == Outcome::kSent ? sent : limited);
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(WaitUntil([&] { return sent + limited == 800; }));
  EXPECT_EQ(sent, 100);
  EXPECT_EQ(Find("u").current_count, 100);
  EXPECT_EQ(gateway_->outbox(), 100U);
  EXPECT_EQ(gateway_->waiting(), 0U);
}

// However fast they come.
TEST_F(EmbeddedGateway, ForgetsWhatHasExpiredAsFastAsItComes) {
  const auto many = [this](const std::string& sql) {
    return database_->WriteAndWait([&](weir::sqlite::Connection& connection) {
      return connection.Execute(
          ("WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 30000) " +
           sql)
              .c_str());
    });
  };
  const auto left = [this](const char* table) {
    std::int64_t count = -1;
    static_cast<void>(database_->Read([&](weir::sqlite::Connection& connection) -> Status {
      count = *connection.ReadNumber("SELECT count(*) FROM " + std::string(table));
      return {};
    }));
    return count;
  };
  ASSERT_TRUE(many("INSERT INTO notify_key SELECT 'u', i, 0, '', 1, 1, 1, 1 FROM n").ok());
  ASSERT_TRUE(many("INSERT INTO notify_message(event_id, user_id, channel, recipient, state, "
                   "accepted_at, updated_at) SELECT i, 'u', 'sms', '', 2, 1, 1 FROM n")
                  .ok());
  clock_.Advance(std::chrono::hours(24 * 31));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(Send({"nobody", "m"}).ok());
    clock_.Advance(kSweepPause);
  }
  EXPECT_EQ(left("notify_key"), 0);
  EXPECT_EQ(left("notify_message"), 0);
}

}  // namespace
}  // namespace weir::notify::sqlite
