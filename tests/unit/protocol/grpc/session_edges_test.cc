// Ways for a call to end other than its answer, and what is kept of its deadline then.

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <chrono>
#include <string>

#include "unit/protocol/grpc/session_fixture.h"

namespace weir::grpc::testing {
namespace {

using std::chrono::seconds;
using SessionEdgesTest = SessionTest;

Nanos After(const ManualClock& clock, seconds time) {
  return clock.Now() + std::chrono::nanoseconds(time).count();
}

TEST_F(SessionEdgesTest, TrailersEndARequestAndSayNothingElse) {
  const std::int32_t id = client_->Call("/test.Test/Echo", Message("m"), {}, true);
  client_->Exchange(*server_);
  std::string name = "grpc-encoding";
  std::string value = "gzip";
  const nghttp2_nv field{reinterpret_cast<std::uint8_t*>(name.data()),
                         reinterpret_cast<std::uint8_t*>(value.data()), name.size(), value.size(),
                         NGHTTP2_NV_FLAG_NONE};
  ASSERT_EQ(nghttp2_submit_trailer(client_->h2(), id, &field, 1), 0);
  EXPECT_TRUE(client_->Exchange(*server_));
  EXPECT_EQ(client_->answer(id).status(), "0");
  EXPECT_EQ(Texts(client_->answer(id)), std::vector<std::string>{"m"});
}

TEST_F(SessionEdgesTest, MethodsNeedNotCollectWork) {
  Services services;
  services.Add("/test.Test/Echo", std::make_unique<Echo>());
  Session session(services, {}, clock_, *this);
  H2Client client;
  const std::int32_t id = client.Call("/test.Test/Echo", Message("m"));
  EXPECT_TRUE(client.Exchange(session));
  EXPECT_EQ(client.answer(id).status(), "0");
}

TEST_F(SessionEdgesTest, ACallThatIsCancelledInThePieceItCameInLeavesNothing) {
  client_->Exchange(*server_);
  const std::int32_t id =
      client_->Call("/test.Test/Silent", Message("m"), {{"grpc-timeout", "5S"}}, true);
  std::string bytes = client_->Output();
  client_->Cancel(id);
  bytes += client_->Output();
  EXPECT_TRUE(server_->Receive(bytes));
  EXPECT_EQ(server_->open_calls(), 0U);
  EXPECT_FALSE(server_->NextDeadline().has_value());
}

TEST_F(SessionEdgesTest, ACallThatIsOverHasNoDeadline) {
  const std::int32_t id =
      client_->Call("/test.Test/Silent", Message("m"), {{"grpc-timeout", "5S"}});
  client_->Exchange(*server_);
  EXPECT_EQ(server_->NextDeadline(), After(clock_, seconds(5)));
  client_->Cancel(id);
  client_->Exchange(*server_);
  EXPECT_FALSE(server_->NextDeadline().has_value()) << "cancelled";
  client_->Call("/test.Test/Silent", Message("m"), {{"grpc-timeout", "5S"}});
  client_->Exchange(*server_);
  server_->EndCalls("enough");
  EXPECT_FALSE(server_->NextDeadline().has_value()) << "answered, though not yet sent";
}

TEST_F(SessionEdgesTest, ARequestThatHasArrivedWithoutADeadlineMayTakeItsTime) {
  client_->Exchange(*server_);
  const std::int32_t id = client_->Call("/test.Test/Silent", Message("m"), {}, true);
  client_->Exchange(*server_);
  client_->End(id);
  client_->Exchange(*server_);
  clock_.Advance(SessionOptions().request_timeout);
  server_->Expire(clock_.Now());
  client_->Exchange(*server_);
  EXPECT_EQ(server_->open_calls(), 1U);
  EXPECT_FALSE(server_->NextDeadline().has_value());
}

TEST_F(SessionEdgesTest, ARequestThatDoesNotArriveEndsBeforeItsOwnDeadline) {
  client_->Exchange(*server_);
  const std::int32_t id =
      client_->Call("/test.Test/Silent", Message("m"), {{"grpc-timeout", "40S"}}, true);
  client_->Exchange(*server_);
  clock_.Advance(SessionOptions().request_timeout);
  server_->Expire(clock_.Now());
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(id).message(), "the request did not arrive in time");
}

TEST_F(SessionEdgesTest, TheNextDeadlineIsThatOfACallOrOfAPeerThatTakesNothing) {
  const nghttp2_settings_entry none{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
  nghttp2_submit_settings(client_->h2(), NGHTTP2_FLAG_NONE, &none, 1);
  client_->Call("/test.Test/Echo", Message("answer"));
  client_->Exchange(*server_);
  const Nanos stalls = After(clock_, seconds(30));
  EXPECT_EQ(server_->NextDeadline(), stalls);
  client_->Call("/test.Test/Silent", Message("m"), {{"grpc-timeout", "40S"}});
  client_->Exchange(*server_);
  EXPECT_EQ(server_->NextDeadline(), stalls);
  const Nanos sooner = After(clock_, seconds(5));
  client_->Call("/test.Test/Silent", Message("m"), {{"grpc-timeout", "5S"}});
  client_->Exchange(*server_);
  EXPECT_EQ(server_->NextDeadline(), sooner);
  // Once it is cut off for that, only the calls count, and it is cut off only once.
  clock_.Advance(seconds(30));
  outputs_ = 0;
  server_->Expire(clock_.Now());
  const int said = outputs_;
  EXPECT_GT(said, 0);
  EXPECT_EQ(server_->NextDeadline(), After(clock_, seconds(10)));
  server_->Expire(clock_.Now());
  EXPECT_EQ(outputs_, said);
}

// More calls end before their deadline than the number of deadlines kept.
TEST_F(SessionEdgesTest, DeadlinesOfManyCallsThatAreOverDoNotHideThoseOfOthers) {
  client_->Exchange(*server_);
  const std::int32_t late =
      client_->Call("/test.Test/Silent", Message("m"), {{"grpc-timeout", "20S"}});
  const std::int32_t soon =
      client_->Call("/test.Test/Silent", Message("m"), {{"grpc-timeout", "10S"}});
  client_->Exchange(*server_);
  for (int i = 0; i < 1'100; ++i) {
    const std::int32_t id = client_->Call("/test.Test/Silent", Message("m"),
                                          {{"grpc-timeout", std::to_string(3'600 - i) + "S"}});
    client_->Exchange(*server_);
    client_->Cancel(id);
    ASSERT_TRUE(client_->Exchange(*server_));
  }
  EXPECT_EQ(server_->NextDeadline(), After(clock_, seconds(10)));
  clock_.Advance(seconds(10));
  server_->Expire(clock_.Now());
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(soon).status(), "4");
  EXPECT_EQ(client_->answer(late).status(), "");
  EXPECT_EQ(server_->NextDeadline(), After(clock_, seconds(10)));
}

TEST_F(SessionEdgesTest, CallsWhoseTimeIsOverTogetherEndInTurns) {
  client_->Exchange(*server_);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 1'000; ++i) {
    ids.push_back(client_->Call("/test.Test/Silent", Message("m"), {{"grpc-timeout", "5S"}}));
  }
  client_->Exchange(*server_);
  (void)server_->TakeAnswered();
  clock_.Advance(seconds(5));
  int turns = 1;
  for (bool more = true; more; ++turns) {
    more = server_->Expire(clock_.Now());
    EXPECT_LE(server_->TakeAnswered(), 256U);
    EXPECT_EQ(server_->NextDeadline().has_value(), more);
    ASSERT_LT(turns, 10);
  }
  client_->Exchange(*server_);
  for (const std::int32_t id : ids) EXPECT_EQ(client_->answer(id).status(), "4");
}

TEST_F(SessionEdgesTest, CallsThatAShutdownEndsEndInTurns) {
  client_->Exchange(*server_);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 1'000; ++i) {
    ids.push_back(client_->Call("/test.Test/Silent", Message("m")));
  }
  client_->Exchange(*server_);
  (void)server_->TakeAnswered();
  int turns = 1;
  for (bool more = true; more; ++turns) {
    more = server_->EndCalls("the end");
    EXPECT_LE(server_->TakeAnswered(), 256U);
    ASSERT_LT(turns, 10);
    // Those that close in between make room for others.
    if (turns % 2 == 0) client_->Exchange(*server_);
  }
  client_->Exchange(*server_);
  for (const std::int32_t id : ids) EXPECT_EQ(client_->answer(id).status(), "14");
  EXPECT_EQ(server_->open_calls(), 0U);
  EXPECT_FALSE(server_->EndCalls("the end"));
}

}  // namespace
}  // namespace weir::grpc::testing
