// Calls decided in turns: those that end in between, and how many there can be.

#include "protocol/grpc/decider.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "protocol/grpc/weir_service.h"
#include "unit/protocol/grpc/fake_limiter.h"
#include "unit/protocol/grpc/session_fixture.h"
#include "weir/v1/weir.pb.h"

namespace weir::grpc::testing {
namespace {

using ::testing::Lt;
using ::testing::SizeIs;

class DeciderTest : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    AddWeirService(services_, decider_);
    services_.OnBurstEnd([this] { (void)decider_.Begin(); });
  }

  std::int32_t Ask(int checks, const Fields& fields = {}) {
    v1::CheckBatchRequest batch;
    for (int i = 0; i < checks; ++i) batch.add_checks()->set_key("k");
    const std::int32_t id = client_->Call("/weir.v1.Limiter/CheckBatch", Framed(batch), fields);
    client_->Exchange(*server_);
    return id;
  }
  std::size_t asked() const { return limiter_.asked().size(); }

  FakeLimiter limiter_{[](limiter::Check&) {}};
  Decider decider_{limiter_};
};

// 10,000 checks are 20 turns of 512.
TEST_F(DeciderTest, WhatIsLeftOfACallThatEndedIsNotAskedAbout) {
  for (int i = 0; i < 100; ++i) {
    client_->Cancel(Ask(10'000));
    client_->Exchange(*server_);
    const std::size_t before = asked();
    (void)decider_.Turn();
    EXPECT_EQ(asked(), before);
  }
  EXPECT_FALSE(decider_.midway());
}

TEST_F(DeciderTest, NorOfOneThatIsOverItsDeadlineOrWhoseConnectionBroke) {
  Ask(10'000);
  Restart({});
  const std::int32_t late = Ask(10'000, {{"grpc-timeout", "1S"}});
  clock_.Advance(std::chrono::seconds(2));
  server_->Expire(clock_.Now());
  const std::size_t before = asked();
  EXPECT_TRUE(decider_.Turn());
  EXPECT_FALSE(decider_.Turn());
  EXPECT_EQ(asked(), before);
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(late).status(), "4");
}

// Three messages of one stream of bytes; the store answers late, and in the reverse order.
TEST_F(DeciderTest, OthersOfItsBurstAreAnswered) {
  limiter_.AnswerLater();
  v1::CheckBatchRequest batch;
  std::vector<std::int32_t> calls;
  for (const int checks : {500, 5'000, 700}) {
    batch.Clear();
    for (int i = 0; i < checks; ++i) batch.add_checks()->set_key("k");
    calls.push_back(client_->Call("/weir.v1.Limiter/CheckBatch", Framed(batch)));
  }
  client_->Exchange(*server_);
  client_->Cancel(calls[1]);
  client_->Exchange(*server_);
  while (decider_.Turn()) continue;
  EXPECT_THAT(limiter_.asked(), SizeIs(Lt(500U + 700U + 2 * 512U)));
  for (std::size_t i = limiter_.calls().size(); i-- > 0;) limiter_.Complete(i);
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(calls[0]).status(), "0");
  EXPECT_EQ(client_->answer(calls[2]).status(), "0");
  v1::CheckBatchResponse response;
  ASSERT_TRUE(response.ParseFromString(client_->answer(calls[2]).messages().at(0)));
  EXPECT_EQ(response.responses_size(), 700);
}

// 10,000 checks weigh 7.3 MiB plus their message, so two fit in 16 MiB: 2 × 19 turns are left.
TEST_F(DeciderTest, LittleIsDecidedInTurnsAtATime) {
  std::vector<std::unique_ptr<Session>> servers;
  std::vector<std::unique_ptr<H2Client>> clients;
  for (int i = 0; i < 20; ++i) {
    Ask(10'000);
    servers.push_back(std::move(server_));
    clients.push_back(std::move(client_));
    Restart({});
  }
  int turns = 0;
  for (bool more = true; more; ++turns) more = decider_.Turn();
  EXPECT_LE(turns, 38);
  EXPECT_GE(turns, 20);
  EXPECT_EQ(asked(), 200'000U);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    clients[i]->Exchange(*servers[i]);
    EXPECT_EQ(clients[i]->answer(1).status(), "0");
  }
}

}  // namespace
}  // namespace weir::grpc::testing
