#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "drivers/kafka/consumer.h"
#include "drivers/kafka/producer.h"
#include "drivers/kafka/topics.h"
#include "support/kafka_server.h"
#include "support/ports.h"
#include "support/stopwatch.h"
#include "support/wait.h"

namespace weir::kafka {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::KafkaMessage;
using test::KafkaServer;

class KafkaDriver : public testing::Test {
 protected:
  static void SetUpTestSuite() { broker_ = std::make_unique<KafkaServer>(); }
  static void TearDownTestSuite() { broker_.reset(); }

  static std::unique_ptr<Producer> MakeProducer(ProducerOptions options = {}) {
    options.url = *ParseUrl(broker_->url());
    return *Producer::Open(options);
  }
  static std::unique_ptr<Consumer> MakeConsumer(const std::string& topic) {
    return *Consumer::Open({.url = *ParseUrl(broker_->url()), .group = "g", .topic = topic});
  }
  static Status PublishAndWait(Producer& producer, const Outgoing& message) {
    std::promise<Status> told;
    producer.Publish(message, [&told](Status status) { told.set_value(std::move(status)); });
    return told.get_future().get();
  }
  /// Consumes until `count` messages have arrived; returns all of them.
  static std::vector<Incoming> Take(Consumer& consumer, std::size_t count) {
    std::vector<Incoming> all;
    EXPECT_TRUE(test::WaitUntil([&] {
      for (Incoming& one : consumer.Poll(100, milliseconds(50))) all.push_back(std::move(one));
      return all.size() >= count;
    }));
    return all;
  }

  static std::unique_ptr<KafkaServer> broker_;
};
std::unique_ptr<KafkaServer> KafkaDriver::broker_;

TEST_F(KafkaDriver, ConfirmedMeansThatKcatReadsIt) {
  auto producer = MakeProducer();
  const Status status = PublishAndWait(
      *producer, {.topic = "confirmed", .key = "ann", .payload = "hi", .headers = {{"why", "x"}}});
  ASSERT_TRUE(status) << status.error().message;
  const std::vector<KafkaMessage> messages = broker_->Read("confirmed");
  ASSERT_EQ(messages.size(), 1);
  EXPECT_EQ(messages[0].key, "ann");
  EXPECT_EQ(messages[0].payload, "hi");
  EXPECT_EQ(messages[0].headers, "why=x");
}

TEST_F(KafkaDriver, MakingATopicTwiceIsNoError) {
  const Url url = *ParseUrl(broker_->url());
  EXPECT_TRUE(MakeTopics(url, {{"made", 2}}));
  EXPECT_TRUE(MakeTopics(url, {{"made", 2}, {"made-too", 1}}));
}

TEST_F(KafkaDriver, ManyThreadsPublishAndEachKeyKeepsItsOrder) {
  ASSERT_TRUE(MakeTopics(*ParseUrl(broker_->url()), {{"order", 3}}));
  auto producer = MakeProducer();
  std::atomic<int> confirmed = 0;
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&producer, &confirmed, thread] {
      for (int i = 0; i < kEach; ++i) {
        producer->Publish(
            {.topic = "order", .key = std::to_string(thread), .payload = std::to_string(i)},
            [&confirmed](const Status& status) { confirmed += status.ok() ? 1 : 0; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  producer.reset();  // waits for messages in flight
  EXPECT_EQ(confirmed, kThreads * kEach);
  std::map<std::string, int> next;
  for (const KafkaMessage& message : broker_->Read("order")) {
    EXPECT_EQ(message.payload, std::to_string(next[message.key]++));
  }
  EXPECT_EQ(next.size(), kThreads);
}

TEST_F(KafkaDriver, WhatWasNotCommittedComesAgain) {
  ASSERT_TRUE(MakeTopics(*ParseUrl(broker_->url()), {{"again", 1}}));
  auto producer = MakeProducer();
  for (const char* payload : {"0", "1", "2"}) {
    ASSERT_TRUE(PublishAndWait(*producer, {.topic = "again", .key = "k", .payload = payload}));
  }
  auto consumer = MakeConsumer("again");
  ASSERT_EQ(Take(*consumer, 3).size(), 3);
  const Position handled{.partition = 0, .offset = 1};
  ASSERT_TRUE(consumer->Commit({&handled, 1}));

  consumer = nullptr;
  consumer = MakeConsumer("again");
  const std::vector<Incoming> rest = Take(*consumer, 2);
  ASSERT_EQ(rest.size(), 2);
  EXPECT_EQ(rest[0].payload, "1");
  EXPECT_EQ(rest[1].payload, "2");
}

// Many more messages than one Poll takes wait in librdkafka's queues when the sender stops.
TEST_F(KafkaDriver, MessagesThatWereFetchedAheadDoNotHoldUpTheEnd) {
  ASSERT_TRUE(MakeTopics(*ParseUrl(broker_->url()), {{"ahead", 1}}));
  constexpr std::size_t kCount = 2'000;
  auto producer = MakeProducer();
  for (std::size_t i = 0; i < kCount; ++i) {
    producer->Publish({.topic = "ahead", .key = "k", .payload = std::to_string(i)},
                      [](const Status& status) { EXPECT_TRUE(status); });
  }
  producer.reset();  // waits for messages in flight
  const auto take_one = [](Consumer& consumer) {
    return test::WaitUntil([&] { return consumer.Poll(1, milliseconds(50)).size() == 1; });
  };
  auto consumer = MakeConsumer("ahead");
  ASSERT_TRUE(take_one(*consumer));
  const test::Stopwatch watch;
  consumer.reset();
  EXPECT_LT(watch.elapsed(), seconds(4)) << "the group does not know that its member has left";
  consumer = MakeConsumer("ahead");
  EXPECT_EQ(Take(*consumer, kCount).size(), kCount);

  consumer = MakeConsumer("ahead");
  ASSERT_TRUE(take_one(*consumer));
  broker_->Pause();
  const test::Stopwatch stands_still;
  consumer.reset();
  EXPECT_LT(stands_still.elapsed(), seconds(8));
  broker_->Resume();
  EXPECT_TRUE(test::WaitUntil(
      [&] {
        return MakeTopics(*ParseUrl(broker_->url()), {{"awake", 1}}).ok();
      },
      seconds(30)));
}

// A member that joins while another is handling messages waits until these are done: nothing is
// handled twice, and nothing is skipped.
TEST_F(KafkaDriver, AMemberThatJoinsIsGivenNothingThatAnotherHasInHand) {
  ASSERT_TRUE(MakeTopics(*ParseUrl(broker_->url()), {{"joined", 2}}));
  auto producer = MakeProducer();
  const auto publish = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      const std::string text = std::to_string(i);
      ASSERT_TRUE(PublishAndWait(*producer, {.topic = "joined", .key = text, .payload = text}));
    }
  };
  publish(0, 20);
  std::multiset<std::string> handled;
  const auto handle = [&](Consumer& consumer, const std::vector<Incoming>& messages) {
    std::map<std::int32_t, std::int64_t> ends;
    for (const Incoming& one : messages) {
      handled.insert(one.payload);
      ends[one.partition] = one.offset + 1;
    }
    std::vector<Position> positions;
    for (const auto& [partition, offset] : ends) positions.push_back({partition, offset});
    EXPECT_TRUE(consumer.Commit(positions));
  };
  auto first = MakeConsumer("joined");
  const std::vector<Incoming> in_hand = Take(*first, 20);
  auto second = MakeConsumer("joined");
  EXPECT_TRUE(second->Poll(1, seconds(4)).empty()) << "another member has them";
  handle(*first, in_hand);

  publish(20, 40);
  EXPECT_TRUE(test::WaitUntil([&] {
    handle(*first, first->Poll(7, milliseconds(50)));
    handle(*second, second->Poll(7, milliseconds(50)));
    return handled.size() >= 40;
  }));
  const std::set<std::string> different(handled.begin(), handled.end());
  EXPECT_EQ(handled.size(), 40U);
  EXPECT_EQ(different.size(), 40U);
}

TEST_F(KafkaDriver, AFullQueueRefusesAtOnce) {
  std::atomic<int> refused = 0;  // outlives the producer, which reports the rest in its destructor
  const auto producer =
      *Producer::Open({.url = *ParseUrl("kafka://127.0.0.1:" + std::to_string(test::FreePort())),
                       .delivery_timeout = seconds(2),
                       .max_queued = 2});
  for (int i = 0; i < 3; ++i) {
    producer->Publish({.topic = "full", .key = "k", .payload = "p"}, [&](const Status& status) {
      if (!status && status.error().code == Code::kResourceExhausted) ++refused;
    });
  }
  EXPECT_EQ(refused, 1);
}

// The delivery timeout is 2 s and librdkafka checks for expired messages once a second; a second
// more for a busy machine.
TEST_F(KafkaDriver, ABrokerThatIsAwayIsAnErrorWithinFourSecondsAndComesBackByItself) {
  ASSERT_TRUE(MakeTopics(*ParseUrl(broker_->url()), {{"away", 1}}));
  auto producer = MakeProducer();
  ASSERT_TRUE(PublishAndWait(*producer, {.topic = "away", .key = "k", .payload = "before"}));
  broker_->Kill();
  const test::Stopwatch watch;
  const Status away = PublishAndWait(*producer, {.topic = "away", .key = "k", .payload = "lost"});
  EXPECT_FALSE(away);
  EXPECT_LT(watch.elapsed(), seconds(4));

  broker_->Start();
  EXPECT_TRUE(test::WaitUntil([&] {
    return PublishAndWait(*producer, {.topic = "away", .key = "k", .payload = "after"}).ok();
  }));
  const std::vector<KafkaMessage> messages = broker_->Read("away");
  ASSERT_EQ(messages.size(), 2);
  EXPECT_EQ(messages[0].payload, "before");
  EXPECT_EQ(messages[1].payload, "after");
}

// A message to a topic that was deleted is as valid as any other.
TEST(KafkaTopic, ThatDoesNotExistIsNotTheMessagesFault) {
  const KafkaServer broker({"auto.create.topics.enable=false"});
  Url url = *ParseUrl(broker.url());
  url.properties.emplace_back("topic.metadata.propagation.max.ms", "100");
  auto producer = *Producer::Open({.url = std::move(url), .delivery_timeout = seconds(10)});
  std::promise<Status> told;
  producer->Publish({.topic = "nobody-made-it", .key = "k", .payload = "p"},
                    [&told](Status status) { told.set_value(std::move(status)); });
  const Status status = told.get_future().get();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kUnavailable) << status.error().message;
}

TEST_F(KafkaDriver, AHangingBrokerIsUnknownNotRefused) {
  ASSERT_TRUE(MakeTopics(*ParseUrl(broker_->url()), {{"hang", 1}}));
  auto producer = MakeProducer();
  ASSERT_TRUE(PublishAndWait(*producer, {.topic = "hang", .key = "k", .payload = "before"}));
  broker_->Pause();
  const test::Stopwatch watch;
  const Status status = PublishAndWait(*producer, {.topic = "hang", .key = "k", .payload = "?"});
  EXPECT_LT(watch.elapsed(), seconds(4));
  broker_->Resume();
  ASSERT_FALSE(status);
  // It was sent, so the broker may write it when it resumes.
  EXPECT_EQ(status.error().code, Code::kDeadlineExceeded) << status.error().message;
}

}  // namespace
}  // namespace weir::kafka
