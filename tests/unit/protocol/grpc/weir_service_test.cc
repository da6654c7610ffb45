#include "protocol/grpc/weir_service.h"

#include <gmock/gmock.h>

#include "unit/protocol/grpc/fake_limiter.h"
#include "unit/protocol/grpc/session_fixture.h"
#include "weir/v1/weir.pb.h"

namespace weir::grpc::testing {
namespace {

using std::chrono::nanoseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

v1::CheckRequest CheckOf(const std::string& user, const std::string& domain = "api") {
  v1::CheckRequest request;
  request.set_domain(domain);
  auto& entry = *request.add_descriptors()->add_entries();
  entry.set_key("user");
  entry.set_value(user);
  return request;
}

class WeirServiceTest : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    AddWeirService(services_, decider_);
    services_.OnBurstEnd([this] { decider_.Flush(); });
  }

  // Denies the user "bad", cannot decide for "broken", and admits all others.
  void Decide(limiter::Check& check) {
    const std::string_view user =
        check.request.descriptors.empty() ? "" : check.request.descriptors[0][0].value;
    check.policy = "per-user";
    check.degraded = false;
    check.applied = true;
    check.decision = {};
    check.decision.limit = 100;
    check.decision.remaining = 99 - check.request.cost;
    check.decision.reset_after = nanoseconds(1'500'000'001);
    check.decision.lease = 7;
    check.estimated = user == "leased";
    if (check.reserve.count() > 0) check.reservation = "r" + std::to_string(check.reserve.count());
    if (user == "bad") {
      check.decision.verdict = Verdict::kLimited;
      check.decision.retry_after = nanoseconds(123);
    } else if (user == "broken") {
      check.status = Error{Code::kUnavailable, "away"};
    }
    AddVerdict(check, 0, "per-user", nullptr, check.decision);
    AddVerdict(check, 0, "trial", nullptr, check.decision, true);
  }

  template <typename Response>
  static Response Parsed(const Answer& answer, std::size_t index = 0) {
    Response response;
    EXPECT_TRUE(response.ParseFromString(answer.messages().at(index))) << answer.message();
    return response;
  }

  FakeLimiter limiter_{[this](limiter::Check& check) { Decide(check); }};
  Decider decider_{limiter_};
};

TEST_F(WeirServiceTest, CheckTellsTheWholeDecision) {
  v1::CheckRequest request = CheckOf("42");
  request.set_cost(9);
  const Answer& answer = CallAndWait("/weir.v1.Limiter/Check", Framed(request));
  EXPECT_EQ(answer.status(), "0");
  const auto response = Parsed<v1::CheckResponse>(answer);
  EXPECT_EQ(response.verdict(), v1::ALLOWED);
  EXPECT_EQ(response.limit(), 100);
  EXPECT_EQ(response.remaining(), 90);  // 99 - 9
  EXPECT_EQ(response.reset_after_ns(), 1'500'000'001);
  EXPECT_EQ(response.policy(), "per-user");
  EXPECT_EQ(response.lease(), 7);
  // FNV-1a of "", the verdict's key here, folded: cbf29ce4 ^ 84222325; and the lease.
  EXPECT_EQ(response.leases(), "4fd0bfc10000000000000007");
  EXPECT_EQ(response.policies_size(), 0);
  EXPECT_EQ(limiter_.asked().at(0).op, store::Op::kCharge);
  EXPECT_THAT(limiter_.asked().at(0).descriptors, ElementsAre(ElementsAre(Pair("user", "42"))));
}

TEST_F(WeirServiceTest, ALimitedCheckIsAnAnswer) {
  const Answer& answer = CallAndWait("/weir.v1.Limiter/Check", Framed(CheckOf("bad")));
  EXPECT_EQ(answer.status(), "0");
  EXPECT_EQ(Parsed<v1::CheckResponse>(answer).verdict(), v1::LIMITED);
  EXPECT_EQ(Parsed<v1::CheckResponse>(answer).retry_after_ns(), 123);
}

TEST_F(WeirServiceTest, ExplainTellsEveryPolicy) {
  v1::CheckRequest request = CheckOf("42");
  request.set_explain(true);
  const auto response =
      Parsed<v1::CheckResponse>(CallAndWait("/weir.v1.Limiter/Check", Framed(request)));
  ASSERT_EQ(response.policies_size(), 2);
  EXPECT_EQ(response.policies(0).policy(), "per-user");
  EXPECT_FALSE(response.policies(0).shadow());
  EXPECT_EQ(response.policies(1).policy(), "trial");
  EXPECT_TRUE(response.policies(1).shadow());
}

TEST_F(WeirServiceTest, CostIsOneUnlessGivenAndZeroOnlyLooks) {
  CallAndWait("/weir.v1.Limiter/Check", Framed(CheckOf("42")));
  v1::CheckRequest zero = CheckOf("42");
  zero.set_cost(0);
  CallAndWait("/weir.v1.Limiter/Check", Framed(zero));
  EXPECT_EQ(limiter_.asked().at(0).cost, 1);
  EXPECT_EQ(limiter_.asked().at(1).cost, 0);
}

TEST_F(WeirServiceTest, PeekAndRefundAskForThat) {
  CallAndWait("/weir.v1.Limiter/Peek", Framed(CheckOf("42")));
  CallAndWait("/weir.v1.Limiter/Refund", Framed(CheckOf("42")));
  EXPECT_EQ(limiter_.asked().at(0).op, store::Op::kPeek);
  EXPECT_EQ(limiter_.asked().at(1).op, store::Op::kRefund);
}

TEST_F(WeirServiceTest, ACheckMayOverdraw) {
  v1::CheckRequest request = CheckOf("42");
  request.set_overdraw(true);
  CallAndWait("/weir.v1.Limiter/Check", Framed(request));
  EXPECT_EQ(limiter_.asked().at(0).op, store::Op::kOverdraw);
  EXPECT_EQ(CallAndWait("/weir.v1.Limiter/Peek", Framed(request)).status(), "3");
}

TEST_F(WeirServiceTest, ReservesForAsLongAsItIsTold) {
  v1::CheckRequest request = CheckOf("42");
  request.set_cost(30);
  EXPECT_EQ(Parsed<v1::CheckResponse>(CallAndWait("/weir.v1.Limiter/Reserve", Framed(request)))
                .reservation(),
            "r600000");
  request.set_expires_after_ms(5000);
  EXPECT_EQ(Parsed<v1::CheckResponse>(CallAndWait("/weir.v1.Limiter/Reserve", Framed(request)))
                .reservation(),
            "r5000");
  EXPECT_EQ(limiter_.asked().at(1).op, store::Op::kCharge);
  EXPECT_EQ(CallAndWait("/weir.v1.Limiter/Check", Framed(request)).status(), "3");
  request.set_expires_after_ms(0);
  EXPECT_EQ(CallAndWait("/weir.v1.Limiter/Reserve", Framed(request)).status(), "3");
  request.set_expires_after_ms(1);
  request.set_cost(0);
  EXPECT_EQ(CallAndWait("/weir.v1.Limiter/Reserve", Framed(request)).status(), "3");
}

TEST_F(WeirServiceTest, SettlesWhatWasReserved) {
  v1::SettleRequest request;
  request.set_reservation("r600000");
  request.set_cost(12);
  const auto response =
      Parsed<v1::SettleResponse>(CallAndWait("/weir.v1.Limiter/Settle", Framed(request)));
  EXPECT_TRUE(response.settled());
  EXPECT_EQ(response.standing().limit(), 100);
  EXPECT_EQ(limiter_.asked().at(0).op, store::Op::kSettle);
  EXPECT_EQ(limiter_.asked().at(0).cost, 12);
  request.set_cost(-1);
  EXPECT_EQ(CallAndWait("/weir.v1.Limiter/Settle", Framed(request)).status(), "3");
}

TEST_F(WeirServiceTest, SaysWhatIsEstimated) {
  EXPECT_TRUE(
      Parsed<v1::CheckResponse>(CallAndWait("/weir.v1.Limiter/Check", Framed(CheckOf("leased"))))
          .estimated());
  EXPECT_FALSE(
      Parsed<v1::CheckResponse>(CallAndWait("/weir.v1.Limiter/Check", Framed(CheckOf("42"))))
          .estimated());
}

TEST_F(WeirServiceTest, ReleaseNamesItsLease) {
  v1::ReleaseRequest request;
  request.set_domain("api");
  *request.add_descriptors() = CheckOf("42").descriptors(0);
  EXPECT_EQ(CallAndWait("/weir.v1.Limiter/Release", Framed(request)).status(), "3");
  request.set_lease(77);
  const Answer& answer = CallAndWait("/weir.v1.Limiter/Release", Framed(request));
  EXPECT_EQ(answer.status(), "0");
  EXPECT_TRUE(Parsed<v1::ReleaseResponse>(answer).released());
  EXPECT_EQ(limiter_.asked().at(0).op, store::Op::kRelease);
  EXPECT_EQ(limiter_.asked().at(0).lease, 77);
  request.set_leases("no");
  EXPECT_EQ(CallAndWait("/weir.v1.Limiter/Release", Framed(request)).status(), "3");
  request.set_leases("296230c00000000000000007");
  CallAndWait("/weir.v1.Limiter/Release", Framed(request));
  EXPECT_EQ(limiter_.asked().at(1).permits, (std::vector<limiter::Permit>{{0x296230c0, 7}}));
}

TEST_F(WeirServiceTest, ABatchIsOneDecisionAndAnsweredInOrder) {
  v1::CheckBatchRequest request;
  request.set_domain("shared");
  request.set_id(99);
  *request.add_checks() = CheckOf("1", "");
  *request.add_checks() = CheckOf("bad", "own");
  *request.add_checks() = CheckOf("broken", "");
  *request.add_checks() = CheckOf("4", "");
  const Answer& answer = CallAndWait("/weir.v1.Limiter/CheckBatch", Framed(request));
  EXPECT_EQ(answer.status(), "0");
  const auto response = Parsed<v1::CheckBatchResponse>(answer);
  EXPECT_EQ(response.id(), 99U);
  ASSERT_EQ(response.responses_size(), 4);
  EXPECT_EQ(response.responses(0).verdict(), v1::ALLOWED);
  EXPECT_EQ(response.responses(1).verdict(), v1::LIMITED);
  EXPECT_EQ(response.responses(2).verdict(), v1::VERDICT_UNSPECIFIED);
  EXPECT_EQ(response.responses(2).error().code(), 14);
  EXPECT_EQ(response.responses(3).verdict(), v1::ALLOWED);
  EXPECT_THAT(limiter_.calls(), ElementsAre(4));
  EXPECT_EQ(limiter_.asked().at(0).domain, "shared");
  EXPECT_EQ(limiter_.asked().at(1).domain, "own");
}

TEST_F(WeirServiceTest, AnEmptyBatchHasAnEmptyAnswer) {
  const Answer& answer =
      CallAndWait("/weir.v1.Limiter/CheckBatch", Framed(v1::CheckBatchRequest()));
  EXPECT_EQ(answer.status(), "0");
  EXPECT_EQ(Parsed<v1::CheckBatchResponse>(answer).responses_size(), 0);
}

TEST_F(WeirServiceTest, AnInvalidCheckOfABatchIsNamedAndNothingIsDecided) {
  v1::CheckBatchRequest request;
  *request.add_checks() = CheckOf("1");
  request.add_checks()->set_domain("api");
  const Answer& answer = CallAndWait("/weir.v1.Limiter/CheckBatch", Framed(request));
  EXPECT_EQ(answer.status(), "3");
  EXPECT_THAT(answer.message(), HasSubstr("checks[1]"));
  EXPECT_TRUE(limiter_.asked().empty());
}

TEST_F(WeirServiceTest, NegativeCostsAreInvalid) {
  v1::CheckRequest request = CheckOf("1");
  request.set_cost(-1);
  EXPECT_EQ(CallAndWait("/weir.v1.Limiter/Check", Framed(request)).status(), "3");
}

TEST_F(WeirServiceTest, AStreamAnswersEachMessageInOrderEvenIfDecidedOutOfOrder) {
  limiter_.AnswerLater();
  const std::int32_t id = client_->Call("/weir.v1.Limiter/CheckStream", "", {}, true);
  for (std::uint64_t number = 0; number < 3; ++number) {
    v1::CheckBatchRequest request;
    request.set_id(number);
    *request.add_checks() = CheckOf(std::to_string(number));
    client_->Send(id, Framed(request));
    client_->Exchange(*server_);
  }
  client_->End(id);
  client_->Exchange(*server_);
  limiter_.Complete(2);
  limiter_.Complete(0);
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(id).messages().size(), 1U);
  EXPECT_FALSE(client_->answer(id).closed);
  limiter_.Complete(1);
  client_->Exchange(*server_);
  ASSERT_EQ(client_->answer(id).messages().size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(Parsed<v1::CheckBatchResponse>(client_->answer(id), i).id(), i);
  }
  EXPECT_EQ(client_->answer(id).status(), "0");
}

}  // namespace
}  // namespace weir::grpc::testing
