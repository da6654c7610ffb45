// Options::gather: checks that arrive one by one wait a moment for others and go in one call.

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <string>

#include "store/redis/redis_store.h"
#include "support/redis_server.h"

namespace weir::store::redis {
namespace {

using namespace std::chrono_literals;

class RedisGather : public testing::Test {
 protected:
  void Make(std::chrono::nanoseconds gather) {
    store_ = *MakeStore(io_, {.url = server_.url(), .command_timeout = 20s, .gather = gather});
  }
  struct Asked {
    std::string key;
    Charge charge;
    Decision decision;
    Application application;
    bool done = false;
  };
  Asked& Ask(Op op = Op::kCharge) {
    Asked& asked = asked_.emplace_back();
    asked.key = "default/one|user:" + std::to_string(asked_.size() % 3);
    asked.charge = {asked.key, 1, &quota_};
    asked.application.op = op;
    asked.application.charges = {&asked.charge, 1};
    asked.application.decisions = {&asked.decision, 1};
    store_->Apply({&asked.application, 1}, [&asked] { asked.done = true; });
    io_.restart();
    io_.poll();
    return asked;
  }
  bool Wait(const Asked& asked) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!asked.done && std::chrono::steady_clock::now() < deadline) {
      io_.restart();
      io_.run_one_for(100ms);
    }
    return asked.done && asked.application.status.ok() && asked.application.applied;
  }
  /// How many reads the server has done so far.
  int Reads() {
    const std::string stats = server_.Command({"INFO", "stats"});
    const std::string name = "total_reads_processed:";
    return std::stoi(stats.substr(stats.find(name) + name.size()));
  }

  test::RedisServer server_;
  const Quota quota_ = *Quota::FixedWindow(1'000'000, 1h);
  boost::asio::io_context io_{1};
  std::deque<Asked> asked_;
  std::unique_ptr<Store> store_;
};

TEST_F(RedisGather, ChecksThatComeOneByOneGoTogether) {
  Make(100ms);
  ASSERT_TRUE(Wait(Ask()));
  const int before = Reads();
  for (int i = 0; i < 60; ++i) {
    Ask();
    io_.restart();
    io_.run_for(1ms);  // enough for an answer, if it has been sent
  }
  for (const Asked& each : asked_) ASSERT_TRUE(Wait(each));
  EXPECT_LT(Reads() - before, 30) << "about one each without it";
}

// So long that nothing below can happen because of the timeout.
constexpr auto kVeryLong = 1h;

TEST_F(RedisGather, TheFirstCheckAfterASilenceWaitsForNobody) {
  Make(kVeryLong);
  EXPECT_TRUE(Wait(Ask()));
}

TEST_F(RedisGather, WhateverElseComesTakesChecksThatWaitWithIt) {
  Make(kVeryLong);
  ASSERT_TRUE(Wait(Ask()));
  const Asked& waits = Ask();
  io_.restart();
  io_.run_for(20ms);
  EXPECT_FALSE(waits.done);
  EXPECT_TRUE(Wait(Ask(Op::kPeek)));
  EXPECT_TRUE(Wait(waits));
}

TEST_F(RedisGather, AFullCallGoesAtOnce) {
  Make(kVeryLong);
  ASSERT_TRUE(Wait(Ask()));
  for (int i = 0; i < 255; ++i) Ask();
  EXPECT_FALSE(asked_.back().done);
  Ask();
  for (const Asked& each : asked_) ASSERT_TRUE(Wait(each));
}

TEST_F(RedisGather, ClosingDoesNotWait) {
  Make(kVeryLong);
  ASSERT_TRUE(Wait(Ask()));
  const Asked& waits = Ask();
  store_.reset();
  EXPECT_TRUE(waits.done);
  EXPECT_EQ(waits.application.status.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace weir::store::redis
