#include "store/redis/queue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <vector>

namespace weir::store::redis {
namespace {

constexpr std::size_t kDepth = Queue::kDepth;

/// Applications of one charge each, each in a separate Apply.
class RedisQueue : public testing::Test {
 protected:
  Pending One(const Quota& quota) {
    Held& held = held_.emplace_back();
    held.charge = {"key", 1, &quota};
    held.application.charges = {&held.charge, 1};
    held.application.decisions = {&held.decision, 1};
    return {&held.application, std::make_shared<Pending::Call>()};
  }
  void Add(Queue& queue, int count, const Quota& quota) {
    for (int i = 0; i < count; ++i) queue.Add(One(quota));
  }
  void Add(Queue& queue, int count) { Add(queue, count, bucket_); }

  /// The number of applications in each call that can be sent now.
  std::vector<std::size_t> Send(Queue& queue, std::size_t depth) {
    std::vector<std::size_t> sizes;
    while (std::shared_ptr<Load> load = queue.Next(depth)) {
      sizes.push_back(load->pending.size());
      out_.push_back(std::move(load));
    }
    return sizes;
  }
  /// Answers the oldest call.
  void Answer(Queue& queue) {
    queue.Answered(*out_.front());
    out_.pop_front();
  }

  const Quota bucket_ = *Quota::TokenBucket(10, 10);
  const Quota log_ = *Quota::SlidingLog(10, std::chrono::seconds(1));
  using Sizes = std::vector<std::size_t>;

 private:
  struct Held {
    Charge charge;
    Decision decision;
    Application application;
  };
  std::deque<Held> held_;
  std::deque<std::shared_ptr<Load>> out_;
};

TEST_F(RedisQueue, AFewSingleChargesGoByThemselvesWhateverTheDepth) {
  for (const std::size_t depth : {std::size_t{1}, kDepth}) {
    Queue queue;
    Add(queue, 3);
    EXPECT_EQ(Send(queue, depth), (Sizes{1, 1, 1}));
    Add(queue, 1);
    EXPECT_EQ(Send(queue, depth), Sizes{1});
    Add(queue, 1);
    EXPECT_EQ(Send(queue, depth), Sizes{}) << "four are in flight";
    Answer(queue);
    EXPECT_EQ(Send(queue, depth), Sizes{1});
    while (!queue.idle()) Answer(queue);
  }
}

TEST_F(RedisQueue, ALaneOfItsOwnKeepsFourCombinedCallsInFlight) {
  Queue queue;
  for (std::size_t i = 0; i < kDepth; ++i) {
    Add(queue, 9);
    EXPECT_EQ(Send(queue, kDepth), Sizes{9});
  }
  Add(queue, 9);
  EXPECT_EQ(Send(queue, kDepth), Sizes{});
  Answer(queue);
  EXPECT_EQ(Send(queue, kDepth), Sizes{9});
}

TEST_F(RedisQueue, WithLessDepthWhatComesMeanwhileGoesTogether) {
  Queue queue;
  Add(queue, 9);
  EXPECT_EQ(Send(queue, 1), Sizes{9});
  for (int i = 0; i < 20; ++i) {
    Add(queue, 1);
    EXPECT_EQ(Send(queue, 1), Sizes{}) << "not by itself either, beside a combined call";
  }
  Answer(queue);
  EXPECT_EQ(Send(queue, 1), Sizes{20});
  Answer(queue);
  EXPECT_TRUE(queue.idle());
}

TEST_F(RedisQueue, ACombinedCallWaitsForSingleOnes) {
  Queue queue;
  Add(queue, 4);
  EXPECT_EQ(Send(queue, 1), (Sizes{1, 1, 1, 1}));
  Add(queue, 9);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Send(queue, 1), Sizes{});
    Answer(queue);
  }
  EXPECT_EQ(Send(queue, 1), Sizes{9});
}

TEST_F(RedisQueue, WhatHasNoScriptForOneCountsAsCombined) {
  Queue queue;
  Add(queue, 1, log_);
  EXPECT_EQ(Send(queue, 1), Sizes{1});
  Add(queue, 1, log_);
  EXPECT_EQ(Send(queue, 1), Sizes{});
  EXPECT_EQ(Send(queue, 2), Sizes{1});
}

TEST_F(RedisQueue, AnApplyThatDoesNotFitIntoACallGoesCallByCall) {
  Queue queue;
  const auto call = std::make_shared<Pending::Call>();
  for (int i = 0; i < 300; ++i) {
    Pending pending = One(bucket_);
    pending.call = call;
    queue.Add(pending);
  }
  EXPECT_EQ(Send(queue, kDepth), Sizes{256});
  Answer(queue);
  EXPECT_EQ(Send(queue, kDepth), Sizes{44});
}

TEST_F(RedisQueue, WhatIsHeldGoesTogetherWhenItIsReleased) {
  Queue queue;
  Add(queue, 1);
  queue.Hold(1);
  EXPECT_EQ(Send(queue, kDepth), Sizes{});
  Add(queue, 8);
  EXPECT_EQ(Send(queue, kDepth), Sizes{});
  queue.Release(1);
  EXPECT_EQ(Send(queue, kDepth), Sizes(9, 1)) << "call by call, but at once";
  Add(queue, 1);
  EXPECT_EQ(Send(queue, kDepth), Sizes{}) << "nine are in flight";
  for (int i = 0; i < 6; ++i) Answer(queue);
  EXPECT_EQ(Send(queue, kDepth), Sizes{1}) << "it is not held";
}

TEST_F(RedisQueue, ManyThatAreHeldGoInOneCall) {
  Queue queue;
  Add(queue, 17);
  queue.Hold(1);
  EXPECT_EQ(Send(queue, kDepth), Sizes{});
  queue.Release(1);
  EXPECT_EQ(Send(queue, kDepth), Sizes{17});
}

TEST_F(RedisQueue, WhatIsHeldGoesAtOnceWhenItFillsACall) {
  Queue queue;
  Add(queue, 1);
  queue.Hold(1);
  Add(queue, 254);
  EXPECT_EQ(Send(queue, kDepth), Sizes{});
  Add(queue, 1);
  EXPECT_EQ(Send(queue, kDepth), Sizes{256});
  Add(queue, 1);
  queue.Hold(2);
  queue.Release(1);
  EXPECT_EQ(Send(queue, kDepth), Sizes{}) << "that was another hold";
  queue.Release(2);
  EXPECT_EQ(Send(queue, kDepth), Sizes{1});
}

TEST_F(RedisQueue, WhatIsReleasedWhileAllCallsAreOutGoesWithTheNextAnswer) {
  Queue queue;
  Add(queue, 9);
  EXPECT_EQ(Send(queue, 1), Sizes{9});
  Add(queue, 2);
  queue.Hold(1);
  Answer(queue);
  EXPECT_EQ(Send(queue, 1), Sizes{}) << "an answer releases nothing";
  Add(queue, 18);
  queue.Release();
  EXPECT_EQ(Send(queue, 1), Sizes{20});
  Add(queue, 3);
  EXPECT_EQ(Send(queue, 1), Sizes{});
  Answer(queue);
  EXPECT_EQ(Send(queue, 1), (Sizes{1, 1, 1}));
}

TEST(RedisQueues, LanesOfOneServerShareItsDepth) {
  constexpr std::uint32_t kOne = 1;
  constexpr std::uint32_t kOther = 2;
  Queues queues;
  queues.Of(10, kOne);
  EXPECT_EQ(queues.DepthOf(10), 4U);
  queues.Of(11, kOne);
  queues.Of(20, kOther);
  EXPECT_EQ(queues.DepthOf(10), 2U);
  EXPECT_EQ(queues.DepthOf(20), 4U);
  for (Queues::Lane lane = 12; lane < 18; ++lane) queues.Of(lane, kOne);
  EXPECT_EQ(queues.DepthOf(10), 1U) << "at least one";
  for (Queues::Lane lane = 11; lane < 18; ++lane) queues.EraseIfIdle(lane);
  EXPECT_EQ(queues.DepthOf(10), 4U);
  queues.Of(10, kOther);
  EXPECT_EQ(queues.DepthOf(20), 2U) << "the slot has moved";
  queues.EraseIfIdle(10);
  EXPECT_EQ(queues.DepthOf(20), 4U);
  EXPECT_EQ(queues.Find(10), nullptr);
}

}  // namespace
}  // namespace weir::store::redis
