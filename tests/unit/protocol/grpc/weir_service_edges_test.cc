// Requests of weir.v1 that are refused before anything is decided, and answers that arrive when
// their call is over.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "limiter/permits.h"
#include "protocol/grpc/weir_service.h"
#include "telemetry/tracer.h"
#include "unit/protocol/grpc/fake_limiter.h"
#include "unit/protocol/grpc/session_fixture.h"
#include "weir/v1/weir.pb.h"

namespace weir::grpc::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kInvalidArgument = "3";
constexpr std::string_view kUnavailable = "14";

v1::CheckRequest ForKey(const std::string& key) {
  v1::CheckRequest request;
  request.set_key(key);
  return request;
}

v1::CheckRequest ForUser(const std::string& user) {
  v1::CheckRequest request;
  auto& entry = *request.add_descriptors()->add_entries();
  entry.set_key("user");
  entry.set_value(user);
  return request;
}

class WeirServiceEdges : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    AddWeirService(services_, decider_);
    services_.OnBurstEnd([this] { decider_.Flush(); });
  }

  const Answer& On(const std::string& method, const google::protobuf::MessageLite& request,
                   const Fields& fields = {}) {
    return CallAndWait("/weir.v1.Limiter/" + method, Framed(request), fields);
  }
  void ExpectInvalid(const std::string& method, const google::protobuf::MessageLite& request,
                     const std::string& why) {
    const Answer& answer = On(method, request);
    EXPECT_EQ(answer.status(), kInvalidArgument);
    EXPECT_THAT(answer.message(), HasSubstr(why));
    EXPECT_THAT(limiter_.asked(), IsEmpty());
  }

  Status status_;
  Decision decision_;
  std::string key_;
  FakeLimiter limiter_{[this](limiter::Check& check) {
    check.status = status_;
    check.decision = decision_;
    key_ = check.request.key;
    ids_.emplace_back(check.origin.request_id);
  }};
  std::vector<std::string> ids_;
  Decider decider_{limiter_};
};

TEST_F(WeirServiceEdges, WhoAsksIsAKeyOrDescriptors) {
  EXPECT_EQ(On("Check", ForKey("ada")).status(), "0");
  EXPECT_EQ(key_, "ada");
  v1::ReleaseRequest release;
  release.set_key("bob");
  release.set_lease(7);
  EXPECT_EQ(On("Release", release).status(), "0");
  EXPECT_EQ(key_, "bob");
}

TEST_F(WeirServiceEdges, AMessageThatAsksForMuchIsDecidedInTurns) {
  services_.OnBurstEnd([this] { (void)decider_.Begin(); });
  v1::CheckBatchRequest much;
  for (int i = 0; i < 40; ++i) {
    v1::CheckRequest& check = *much.add_checks();
    for (int k = 0; k < 256; ++k) check.add_descriptors();
  }
  const std::int32_t large = client_->Call("/weir.v1.Limiter/CheckBatch", Framed(much));
  client_->Exchange(*server_);
  EXPECT_THAT(ids_, SizeIs(2));
  // Others are not kept waiting.
  EXPECT_EQ(On("Check", ForKey("ada")).status(), "0");
  EXPECT_THAT(ids_, SizeIs(3));
  std::size_t before = ids_.size();
  while (decider_.Turn()) {
    EXPECT_EQ(ids_.size(), before + 2);
    before = ids_.size();
  }
  client_->Exchange(*server_);
  EXPECT_THAT(ids_, SizeIs(41));
  EXPECT_EQ(client_->answer(large).status(), "0");
}

TEST_F(WeirServiceEdges, NeitherBothNorNoneNorTooMany) {
  v1::CheckRequest both = ForUser("42");
  both.set_key("ada");
  ExpectInvalid("Check", both, "a key or descriptors, not both");
  ExpectInvalid("Check", v1::CheckRequest(), "descriptors must be 1 to 256");
  v1::CheckRequest many;
  for (int i = 0; i < 257; ++i) many.add_descriptors();
  ExpectInvalid("Check", many, "descriptors must be 1 to 256");
  v1::CheckRequest wide;
  auto& descriptor = *wide.add_descriptors();
  for (int i = 0; i < 65; ++i) descriptor.add_entries()->set_key("k" + std::to_string(i));
  ExpectInvalid("Check", wide, "at most 64 entries");
  ExpectInvalid("Reserve", v1::CheckRequest(), "descriptors must be 1 to 256");
}

TEST_F(WeirServiceEdges, WhatGoesWithAnotherCallIsRefused) {
  v1::CheckRequest overdraw = ForKey("ada");
  overdraw.set_overdraw(true);
  ExpectInvalid("Reserve", overdraw, "overdraw is only for Check");
  ExpectInvalid("Refund", overdraw, "overdraw is only for Check");
  v1::CheckRequest late = ForKey("ada");
  late.set_expires_after_ms(std::int64_t{24} * 3600 * 1000 + 1);
  ExpectInvalid("Reserve", late, "expires_after_ms must be 1 to 86400000");
  v1::SettleRequest settle;
  settle.set_cost(kMaxLimit + 1);
  ExpectInvalid("Settle", settle, "cost must be 0 to");
}

TEST_F(WeirServiceEdges, ABatchIsBounded) {
  v1::CheckBatchRequest request;
  for (int i = 0; i <= kMaxBatch; ++i) request.add_checks();
  ExpectInvalid("CheckBatch", request, "at most 10000 checks");
}

TEST_F(WeirServiceEdges, BytesThatAreNoMessageAreRefused) {
  const Answer& answer = CallAndWait("/weir.v1.Limiter/Check", Framed("\xff\xff\xff"));
  EXPECT_EQ(answer.status(), kInvalidArgument);
  EXPECT_THAT(answer.message(), HasSubstr("not a valid protobuf"));
}

TEST_F(WeirServiceEdges, WhatCannotBeDecidedIsTheCallsStatus) {
  status_ = Error{Code::kUnavailable, "away"};
  EXPECT_EQ(On("Check", ForKey("ada")).status(), kUnavailable);
  EXPECT_EQ(On("Reserve", ForKey("ada")).status(), kUnavailable);
  v1::SettleRequest settle;
  settle.set_reservation("r");
  EXPECT_EQ(On("Settle", settle).status(), kUnavailable);
  v1::ReleaseRequest release;
  release.set_key("ada");
  release.set_lease(7);
  EXPECT_EQ(On("Release", release).status(), kUnavailable);
}

TEST_F(WeirServiceEdges, EveryVerdictHasItsName) {
  const auto told = [this](Verdict verdict) {
    decision_.verdict = verdict;
    v1::CheckResponse response;
    EXPECT_TRUE(response.ParseFromString(On("Check", ForKey("ada")).messages().at(0)));
    EXPECT_EQ(response.lease(), 0);
    EXPECT_EQ(response.leases(), "");
    return response.verdict();
  };
  EXPECT_EQ(told(Verdict::kAllowed), v1::ALLOWED);
  EXPECT_EQ(told(Verdict::kLimited), v1::LIMITED);
  EXPECT_EQ(told(Verdict::kNever), v1::NEVER);
  EXPECT_EQ(told(Verdict::kInvalid), v1::VERDICT_UNSPECIFIED);
}

TEST_F(WeirServiceEdges, TheRequestsIdGoesWithItsCheck) {
  On("Check", ForKey("ada"), {{"x-request-id", "r-7"}});
  On("Check", ForKey("ada"));
  EXPECT_EQ(ids_, (std::vector<std::string>{"r-7", ""}));
}

TEST_F(WeirServiceEdges, ASampledCallHasASpan) {
  telemetry::Tracer tracer({.ratio = 0.0});
  limiter_.SetTracer(&tracer);
  On("Check", ForKey("ada"));
  std::vector<telemetry::Span> spans;
  tracer.Take(spans, 10);
  EXPECT_THAT(spans, IsEmpty());
  On("Check", ForKey("ada"),
     {{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}});
  tracer.Take(spans, 10);
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_EQ(spans[0].name, "grpc");
  EXPECT_EQ(spans[0].context.trace_high, 0x0af7651916cd43ddU);
  EXPECT_EQ(spans[0].context.parent, 0xb7ad6b7169203331U);
  limiter_.SetTracer(nullptr);
}

TEST_F(WeirServiceEdges, AnAnswerToACancelledCallIsDropped) {
  limiter_.AnswerLater();
  const std::int32_t first = client_->Call("/weir.v1.Limiter/Check", Framed(ForKey("ada")));
  const std::int32_t second = client_->Call("/weir.v1.Limiter/Check", Framed(ForKey("bob")));
  client_->Exchange(*server_);
  client_->Cancel(first);
  client_->Exchange(*server_);
  ASSERT_THAT(limiter_.calls(), SizeIs(1)) << "both came together";
  limiter_.Complete(0);
  client_->Exchange(*server_);
  EXPECT_THAT(client_->answer(first).messages(), IsEmpty());
  EXPECT_EQ(client_->answer(second).status(), "0");
}

TEST_F(WeirServiceEdges, AnAnswerToASessionThatIsGoneIsDropped) {
  limiter_.AnswerLater();
  const std::int32_t id = client_->Call("/weir.v1.Limiter/Check", Framed(ForKey("ada")));
  client_->Exchange(*server_);
  server_.reset();
  limiter_.Complete(0);
  EXPECT_THAT(client_->answer(id).messages(), IsEmpty());
  // The memory of that call is reused for the next.
  Restart({});
  const std::int32_t next = client_->Call("/weir.v1.Limiter/Check", Framed(ForKey("bob")));
  client_->Exchange(*server_);
  limiter_.Complete(1);
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(next).status(), "0");
}

TEST_F(WeirServiceEdges, ALeaseMayBeNamedByTheTextOfItsPermitsAlone) {
  limiter::Check held;
  Decision decision;
  decision.lease = 7;
  AddVerdict(held, 0, "p", nullptr, decision);
  v1::ReleaseRequest release;
  release.set_key("ada");
  limiter::AppendPermits(*release.mutable_leases(), held);
  EXPECT_EQ(On("Release", release).status(), "0");
  EXPECT_EQ(limiter_.asked().at(0).lease, 0);
  ASSERT_THAT(limiter_.asked().at(0).permits, SizeIs(1));
  EXPECT_EQ(limiter_.asked().at(0).permits[0].lease, 7);
}

TEST_F(WeirServiceEdges, AStreamStaysOpenUntilItsClientEndsIt) {
  v1::CheckBatchRequest one;
  *one.add_checks() = ForKey("ada");
  const std::int32_t id = client_->Call("/weir.v1.Limiter/CheckStream", Framed(one), {}, true);
  client_->Exchange(*server_);
  EXPECT_THAT(client_->answer(id).messages(), SizeIs(1));
  EXPECT_EQ(client_->answer(id).status(), "");
  client_->End(id);
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(id).status(), "0");
}

TEST_F(WeirServiceEdges, MessagesThatWaitForTheirAnswersAreBounded) {
  SessionOptions options;
  options.max_waiting_messages = 2;
  options.stream_backlog_messages = 2;
  options.stream_window_bytes = 65'535;
  Restart(options);
  limiter_.AnswerLater();
  const std::int32_t id = client_->Call("/weir.v1.Limiter/CheckStream", "", {}, true);
  v1::CheckBatchRequest one;
  *one.add_checks() = ForKey("ada");
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(server_->full());
    client_->Send(id, Framed(one));
    client_->Exchange(*server_);
  }
  EXPECT_TRUE(server_->full()) << "three wait";
  // The stream gets no more window: what it still sends is within the old one.
  v1::CheckBatchRequest large;
  *large.add_checks() = ForKey(std::string(1000, 'k'));
  for (int i = 0; i < 200; ++i) client_->Send(id, Framed(large));
  client_->Exchange(*server_);
  const std::size_t before = limiter_.asked().size();
  EXPECT_LT(before, 70U);
  outputs_ = 0;
  for (std::size_t i = 0; i < limiter_.calls().size(); ++i) limiter_.Complete(i);
  EXPECT_FALSE(server_->full());
  EXPECT_GT(outputs_, 0);
  client_->Exchange(*server_);
  EXPECT_GT(limiter_.asked().size(), before) << "the rest has come";
}

// More checks, and larger messages, than memory is kept for.
TEST_F(WeirServiceEdges, ALargeBatchIsAnsweredAsASmallOneAndTheNextIsNotDisturbed) {
  v1::CheckBatchRequest large;
  for (int i = 0; i < 5000; ++i) *large.add_checks() = ForUser("user-" + std::to_string(i));
  const Answer& answer = On("CheckBatch", large);
  EXPECT_EQ(answer.status(), "0");
  v1::CheckBatchResponse response;
  ASSERT_TRUE(response.ParseFromString(answer.messages().at(0)));
  EXPECT_EQ(response.responses_size(), 5000);
  EXPECT_EQ(On("Check", ForUser("42")).status(), "0");
  EXPECT_EQ(limiter_.asked().back().descriptors.at(0).at(0).second, "42");
}

}  // namespace
}  // namespace weir::grpc::testing
