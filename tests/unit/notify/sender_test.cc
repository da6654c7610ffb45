#include "notify/sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "support/temp_dir.h"

namespace weir::notify {

void PrintTo(const DeadLetter& letter, std::ostream* out) { *out << letter.reason; }

namespace {

using kafka::Incoming;
using kafka::Position;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Incoming Message(std::int32_t partition, std::int64_t offset, const std::string& id,
                 const std::string& user = "ann") {
  return {.partition = partition,
          .offset = offset,
          .key = user,
          .payload = EncodeEvent({.id = id, .user_id = user, .message = "hi"})};
}

class RecordingProvider final : public Provider {
 public:
  Status Deliver(const Event& event) override {
    const std::lock_guard lock(mutex_);
    if (before) before(event);
    if (const auto found = errors.find(event.id); found != errors.end()) {
      return Error{found->second, "scripted"};
    }
    delivered[event.user_id].push_back(event.id);
    return {};
  }

  std::map<std::string, Code> errors;
  std::map<std::string, std::vector<std::string>> delivered;
  std::function<void(const Event&)> before;

 private:
  std::mutex mutex_;
};

/// Records what is reported.
class RecordingLog final : public DeliveryLog {
 public:
  Status Report(std::span<const Delivery> ends) override {
    if (is_away) return Error{Code::kUnavailable, "away"};
    reported.insert(reported.end(), ends.begin(), ends.end());
    return {};
  }
  void NoteFailure(const Delivery& /*failure*/) override {}
  Result<std::unordered_map<std::string, Preferences>> PreferencesOf(
      std::span<const std::string> /*users*/) override {
    return std::unordered_map<std::string, Preferences>();
  }
  Result<std::unordered_set<std::string>> Settled(
      std::span<const std::string> /*event_ids*/) override {
    std::unordered_set<std::string> settled = elsewhere;
    for (const Delivery& end : reported) {
      if (end.state == MessageState::kSent) settled.insert(end.event.id);
    }
    return settled;
  }
  Result<Due> TakeDue(Micros /*now*/, std::size_t /*max*/) override { return Due(); }
  Status Forget(std::span<const std::string> /*event_ids*/, Micros /*lease*/) override {
    return {};
  }

  std::vector<Delivery> reported;
  std::unordered_set<std::string> elsewhere;  // delivered by another sender
  bool is_away = false;
};

class SenderTest : public testing::Test {
 protected:
  std::unique_ptr<Sender> Make(std::size_t workers = 1) {
    return std::make_unique<Sender>(
        SenderParts{provider_, *ids_,
                    [this](std::span<const DeadLetter> letters) -> Status {
                      if (refusals_ > 0) {
                        --refusals_;
                        return Error{Code::kUnavailable, "away"};
                      }
                      dead_.insert(dead_.end(), letters.begin(), letters.end());
                      return {};
                    },
                    stats_, *clock_, log_, [this] { ++waits_; }},
        SenderOptions{.workers = workers,
                      .retry = {.attempts = 2,
                                .first_pause = milliseconds(1),
                                .longest_pause = milliseconds(1),
                                .in_place = in_place_}},
        stop_.get_token());
  }
  static std::vector<std::pair<int, std::int64_t>> Pairs(const std::vector<Position>& positions) {
    std::vector<std::pair<int, std::int64_t>> pairs;
    for (const Position& one : positions) pairs.emplace_back(one.partition, one.offset);
    return pairs;
  }

  test::TempDir dir_;
  std::unique_ptr<DeliveredIds> ids_ = *DeliveredIds::Open(dir_.path());
  RecordingProvider provider_;
  DeliveryStats stats_;
  std::vector<DeadLetter> dead_;
  int refusals_ = 0;
  milliseconds in_place_{0};
  std::atomic<int> waits_ = 0;
  DeliveryLog* log_ = nullptr;
  const Clock* clock_ = &SystemClock::Get();
  std::stop_source stop_;
};

TEST_F(SenderTest, DeliversInOrderAndCommitsBehindTheLast) {
  const auto positions =
      Make()->Handle({Message(0, 7, "a"), Message(1, 3, "b", "bob"), Message(0, 8, "c")});
  EXPECT_THAT(provider_.delivered["ann"], ElementsAre("a", "c"));
  EXPECT_THAT(provider_.delivered["bob"], ElementsAre("b"));
  EXPECT_THAT(Pairs(positions), ElementsAre(std::pair(0, 9), std::pair(1, 4)));
}

TEST_F(SenderTest, AnIdIsDeliveredOnceInABatchAndAcrossRestarts) {
  EXPECT_THAT(Pairs(Make()->Handle({Message(0, 0, "a"), Message(0, 1, "a")})),
              ElementsAre(std::pair(0, 2)));
  ids_.reset();
  ids_ = *DeliveredIds::Open(dir_.path());
  auto restarted = Make();
  EXPECT_THAT(Pairs(restarted->Handle({Message(0, 2, "a"), Message(0, 3, "b")})),
              ElementsAre(std::pair(0, 4)));
  EXPECT_THAT(provider_.delivered["ann"], ElementsAre("a", "b"));
  EXPECT_EQ(stats_.count(DeliveryStats::kDuplicate), 2);  // one in the batch, one after the restart
  EXPECT_EQ(stats_.count(DeliveryStats::kDelivered), 2);
}

// A send with a key whose answer was lost before midnight is repeated after it: the id contains the
// day, so it differs.
TEST_F(SenderTest, ARepeatedSendIsDeliveredOnceAlsoIfMidnightLiesBetween) {
  constexpr Micros kMidnight = Micros{20'000} * kKeyLifetime;
  const SendRequest request{"ann", "m", "key"};
  std::int64_t offset = 0;
  const auto message = [&](Micros at) {
    kafka::Incoming incoming = Message(0, offset++, "");
    incoming.payload = EncodeEvent(MakeEvent(request, at));
    return incoming;
  };
  constexpr Micros kSecond = 1'000'000;
  auto sender = Make();
  // In one batch, and in several.
  sender->Handle({message(kMidnight - kSecond), message(kMidnight + kSecond)});
  sender->Handle({message(kMidnight + kKeyLifetime / 2)});
  EXPECT_THAT(provider_.delivered["ann"], testing::SizeIs(1));
  EXPECT_EQ(stats_.count(DeliveryStats::kDuplicate), 2);
  // A key that is reused after its 24 hours is a new message, on whichever day.
  sender->Handle({message(kMidnight + kKeyLifetime + kKeyLifetime / 2 + kSecond)});
  EXPECT_THAT(provider_.delivered["ann"], testing::SizeIs(2));
  sender->Handle({message(kMidnight + 3 * kKeyLifetime - kSecond)});
  EXPECT_THAT(provider_.delivered["ann"], testing::SizeIs(3));
}

TEST_F(SenderTest, MalformedMessagesAreSkippedAndKept) {
  Incoming bad{.partition = 2, .offset = 5, .key = "k", .payload = "{\"id\":"};
  EXPECT_THAT(Pairs(Make()->Handle({bad, Message(2, 6, "a")})), ElementsAre(std::pair(2, 7)));
  EXPECT_THAT(provider_.delivered["ann"], ElementsAre("a"));
  ASSERT_EQ(dead_.size(), 1);
  EXPECT_EQ(dead_[0].message.payload, bad.payload);
  EXPECT_EQ(dead_[0].message.offset, 5);
  EXPECT_THAT(dead_[0].reason, HasSubstr("JSON"));
}

TEST_F(SenderTest, AnIdThatCouldForgeALineIsMalformed) {
  EXPECT_FALSE(Make()
                   ->Handle({{.partition = 0,
                              .offset = 0,
                              .key = "",
                              .payload = R"({"id":"x\nSMS SENT","userId":"u","message":"m"})"}})
                   .empty());
  EXPECT_EQ(dead_.size(), 1);
}

// Without a store there is nowhere to put a message in the meantime.
TEST_F(SenderTest, WaitsForAProviderThatIsDown) {
  in_place_ = std::chrono::minutes(1);
  int failures = 4;  // twice as many as there are attempts
  provider_.before = [&](const Event& event) {
    provider_.errors = failures-- > 0 ? std::map<std::string, Code>{{event.id, Code::kUnavailable}}
                                      : std::map<std::string, Code>{};
  };
  EXPECT_THAT(Pairs(Make()->Handle({Message(0, 0, "a")})), ElementsAre(std::pair(0, 1)));
  EXPECT_THAT(provider_.delivered["ann"], ElementsAre("a"));
  EXPECT_THAT(dead_, IsEmpty());
  EXPECT_GE(waits_, 2) << "for the health check";
}

TEST_F(SenderTest, WithAStoreWhatWaitsForAProviderIsKeptThereAndTheNextGoOn) {
  RecordingLog log;
  log_ = &log;
  provider_.errors = {{"a", Code::kUnavailable}};
  Incoming message = Message(0, 0, "a");
  const Micros now = NowMicros(SystemClock::Get());
  message.payload = EncodeEvent({.id = "a", .user_id = "ann", .message = "hi", .created_at = now});
  EXPECT_THAT(Pairs(Make()->Handle({message, Message(0, 1, "b")})), ElementsAre(std::pair(0, 2)));
  EXPECT_THAT(dead_, IsEmpty());
  ASSERT_EQ(log.reported.size(), 2);
  EXPECT_EQ(log.reported[0].state, MessageState::kQueued);
  EXPECT_GT(log.reported[0].not_before, now);
  EXPECT_EQ(log.reported[0].error, "scripted");
  EXPECT_EQ(log.reported[0].payload, message.payload);
  EXPECT_EQ(log.reported[1].state, MessageState::kSent);
}

TEST_F(SenderTest, WhatCannotBeDeliveredGoesToTheDeadLettersAndMayBePutBack) {
  provider_.errors = {{"never", Code::kInvalidArgument}, {"down", Code::kUnavailable}};
  auto sender = Make();
  EXPECT_THAT(
      Pairs(sender->Handle({Message(0, 0, "never"), Message(0, 1, "down"), Message(0, 2, "fine")})),
      ElementsAre(std::pair(0, 3)));
  EXPECT_EQ(dead_.size(), 2);
  EXPECT_THAT(provider_.delivered["ann"], ElementsAre("fine"));

  provider_.errors.clear();
  static_cast<void>(sender->Handle({Message(0, 3, "never")}));
  EXPECT_THAT(provider_.delivered["ann"], ElementsAre("fine", "never"));
}

TEST_F(SenderTest, NothingIsCommittedBeforeTheDeadLettersAreKept) {
  refusals_ = 1;
  Incoming bad{.partition = 0, .offset = 0, .key = "", .payload = "x"};
  EXPECT_THAT(Pairs(Make()->Handle({bad})), ElementsAre(std::pair(0, 1)));
  EXPECT_EQ(dead_.size(), 1);

  refusals_ = 1'000'000;
  stop_.request_stop();
  EXPECT_THAT(Make()->Handle({bad}), IsEmpty());
}

TEST_F(SenderTest, AStopLeavesTheRestOfThePartitionForTheNextStart) {
  provider_.errors = {{"b", Code::kUnavailable}};
  provider_.before = [this](const Event& event) {
    if (event.id == "b") stop_.request_stop();
  };
  // a is delivered; b fails while we stop; c was not started.
  EXPECT_THAT(Pairs(Make()->Handle({Message(0, 0, "a"), Message(0, 1, "b"), Message(0, 2, "c")})),
              ElementsAre(std::pair(0, 1)));
  EXPECT_THAT(provider_.delivered["ann"], ElementsAre("a"));
  EXPECT_THAT(dead_, IsEmpty());
}

TEST_F(SenderTest, AStopWhileReportsCannotBeMadeDeliversNothingAgain) {
  RecordingLog log;
  log_ = &log;
  log.is_away = true;
  provider_.before = [this](const Event& event) {
    if (event.id == "b") stop_.request_stop();
  };
  EXPECT_THAT(Make()->Handle({Message(0, 0, "a"), Message(0, 1, "b")}), IsEmpty());
  EXPECT_THAT(log.reported, IsEmpty());

  ids_.reset();
  ids_ = *DeliveredIds::Open(dir_.path());
  stop_ = std::stop_source();
  log.is_away = false;
  provider_.before = nullptr;
  EXPECT_THAT(Pairs(Make()->Handle({Message(0, 0, "a"), Message(0, 1, "b"), Message(0, 2, "c")})),
              ElementsAre(std::pair(0, 3)));
  EXPECT_THAT(provider_.delivered["ann"], ElementsAre("a", "b", "c"));
  // What was delivered then is no longer reported as queued.
  ASSERT_EQ(log.reported.size(), 3U);
  for (const Delivery& end : log.reported) EXPECT_EQ(end.state, MessageState::kSent);
}

TEST_F(SenderTest, WhatAnotherSenderDeliveredDuringAPauseIsNotDeliveredAgain) {
  RecordingLog log;
  log_ = &log;
  ManualClock clock(SystemClock::Get().Now());
  clock_ = &clock;
  provider_.before = [&](const Event& event) {
    if (event.id != "a") return;
    clock.Advance(std::chrono::minutes(1));  // paused, and its partition was reassigned
    log.elsewhere = {"b"};
  };
  Make()->Handle({Message(0, 0, "a"), Message(0, 1, "b"), Message(0, 2, "c")});
  EXPECT_THAT(provider_.delivered["ann"], ElementsAre("a", "c"));
  EXPECT_EQ(stats_.count(DeliveryStats::kDuplicate), 1);
}

TEST_F(SenderTest, AStopWhileDeadLettersCannotBeKeptDeliversNothingAgain) {
  provider_.errors["b"] = Code::kInvalidArgument;
  refusals_ = 1;
  provider_.before = [this](const Event& event) {
    if (event.id == "b") stop_.request_stop();
  };
  EXPECT_THAT(Make()->Handle({Message(0, 0, "a"), Message(0, 1, "b")}), IsEmpty());

  stop_ = std::stop_source();
  provider_.before = nullptr;
  Make()->Handle({Message(0, 0, "a"), Message(0, 1, "b")});
  EXPECT_THAT(provider_.delivered["ann"], ElementsAre("a"));
  EXPECT_EQ(dead_.size(), 1U);
}

TEST_F(SenderTest, WorkersKeepTheOrderOfEachUser) {
  std::vector<Incoming> messages;
  for (int i = 0; i < 200; ++i) {
    messages.push_back(Message(0, i, "id" + std::to_string(i), "user" + std::to_string(i % 5)));
  }
  EXPECT_THAT(Pairs(Make(4)->Handle(messages)), ElementsAre(std::pair(0, 200)));
  for (int user = 0; user < 5; ++user) {
    std::vector<std::string> expected;
    for (int i = user; i < 200; i += 5) expected.push_back("id" + std::to_string(i));
    EXPECT_EQ(provider_.delivered["user" + std::to_string(user)], expected);
  }
}

}  // namespace
}  // namespace weir::notify
