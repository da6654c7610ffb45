// Which caller may make which call, and messages that no method should see.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grpc/health/v1/health.pb.h"
#include "protocol/grpc/health.h"
#include "protocol/grpc/reflection.h"
#include "unit/protocol/grpc/session_fixture.h"

namespace weir::grpc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Records every caller that the guard was called for, as address|subject|key.
class SessionGuardTest : public SessionTest {
 protected:
  void Guard(bool admits) {
    services_.SetGuard([this, admits](const Method& method, const Caller& caller) -> Status {
      paths_.push_back(method.path());
      callers_.push_back(std::string(caller.address) + "|" + std::string(caller.subject) + "|" +
                         std::string(caller.key));
      if (admits) return {};
      return Error{Code::kPermissionDenied, "not you"};
    });
  }
  std::string Echo(const Fields& fields) {
    return CallAndWait("/test.Test/Echo", Message("x"), fields).status();
  }

  std::vector<std::string> paths_;
  std::vector<std::string> callers_;
};

TEST_F(SessionGuardTest, IsToldTheKeyWhereverItStands) {
  Guard(true);
  server_->SetPeer("10.0.0.1", [] { return std::string("worker"); });
  EXPECT_EQ(Echo({{"x-weir-key", "a"}}), "0");
  EXPECT_EQ(Echo({{"x-api-key", "b"}}), "0");
  EXPECT_EQ(Echo({{"authorization", "Bearer c"}}), "0");
  EXPECT_EQ(Echo({{"authorization", "Basic d"}}), "0");
  EXPECT_EQ(Echo({}), "0");
  EXPECT_THAT(callers_, ElementsAre("10.0.0.1||a", "10.0.0.1||b", "10.0.0.1||c", "10.0.0.1|worker|",
                                    "10.0.0.1|worker|"))
      << "a certificate speaks where no key does";
  EXPECT_EQ(paths_.front(), "/test.Test/Echo");
}

// As over HTTP: a gateway adds a field of its own to those of its clients.
TEST_F(SessionGuardTest, OfSeveralKeysTheOneForWeirCountsInAnyOrder) {
  Guard(true);
  EXPECT_EQ(Echo({{"x-weir-key", "own"}, {"x-api-key", "b"}, {"authorization", "Bearer c"}}), "0");
  EXPECT_EQ(Echo({{"authorization", "Bearer c"}, {"x-api-key", "b"}, {"x-weir-key", "own"}}), "0");
  EXPECT_EQ(Echo({{"x-api-key", "b"}, {"authorization", "Bearer c"}}), "0");
  EXPECT_EQ(Echo({{"authorization", "bearer c"}}), "0");
  EXPECT_THAT(callers_, ElementsAre("||own", "||own", "||b", "||c"));
}

TEST_F(SessionGuardTest, WithoutACertificateTheSubjectIsEmpty) {
  Guard(true);
  EXPECT_EQ(Echo({}), "0");
  EXPECT_THAT(callers_, ElementsAre("||"));
}

TEST_F(SessionGuardTest, ARefusalIsTheCallsStatusAndTheMethodSeesNothing) {
  Guard(false);
  const Answer& answer = CallAndWait("/test.Test/Echo", Message("x"));
  EXPECT_EQ(answer.status(), "7");
  EXPECT_EQ(answer.message(), "not you");
  EXPECT_THAT(Texts(answer), IsEmpty());
}

TEST_F(SessionGuardTest, IsNotAskedAboutWhatIsRefusedAnyway) {
  Guard(true);
  CallAndWait("/test.Test/Nothing", Message("x"));
  CallAndWait("/test.Test/Echo", Message("x"), {{"grpc-timeout", "soon"}});
  CallAndWait("/test.Test/Echo", Message("x"), {{"grpc-timeout", "0S"}});
  EXPECT_THAT(callers_, IsEmpty());
}

TEST_F(SessionGuardTest, TheFirstByteOfAMessageIsZeroOrOne) {
  const Answer& answer = CallAndWait("/test.Test/Echo", Framed("x", 2));
  EXPECT_EQ(answer.status(), "13");
  EXPECT_THAT(answer.message(), HasSubstr("must be 0 or 1"));
}

TEST_F(SessionGuardTest, DrainingTwiceSaysGoodbyeOnce) {
  client_->Exchange(*server_);
  server_->Drain();
  server_->Drain();
  client_->Exchange(*server_);
  EXPECT_EQ(client_->goaway(), 0);
  const int outputs = outputs_;
  server_->Drain();
  EXPECT_EQ(outputs_, outputs) << "there is nothing left to say";
}

TEST_F(SessionGuardTest, AnswersToACallThatIsOverAreDropped) {
  const std::int32_t id = client_->Call("/test.Test/Silent", Message("x"));
  client_->Exchange(*server_);
  Call* call = server_->Find(id);
  ASSERT_NE(call, nullptr);
  call->Finish(StatusCode::kOk);
  call->Finish(StatusCode::kInternal, "a second time");
  google::protobuf::BytesValue value;
  value.set_value("late");
  call->Send(value);
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(id).status(), "0");
  EXPECT_THAT(Texts(client_->answer(id)), IsEmpty());
}

class ServicesGuardTest : public SessionGuardTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    health_.AddTo(services_);
    AddReflection(services_, {});
  }
  ~ServicesGuardTest() override { server_.reset(); }

  Health health_{{"weir.v1.Limiter"}};
};

TEST_F(ServicesGuardTest, BytesThatAreNoMessageAreRefusedByEveryService) {
  for (const char* path : {"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
                           "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                           "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    const Answer& answer = CallAndWait(path, Framed("\xff\xff\xff"));
    EXPECT_EQ(answer.status(), "3") << path;
    EXPECT_THAT(answer.message(), HasSubstr("not a valid protobuf")) << path;
  }
}

TEST_F(ServicesGuardTest, AStatusThatStaysTheSameIsToldOnce) {
  ::grpc::health::v1::HealthCheckRequest request;
  const std::int32_t id =
      client_->Call("/grpc.health.v1.Health/Watch", Framed(request), {}, /*keep_open=*/false);
  client_->Exchange(*server_);
  health_.SetServing(true);
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(id).messages().size(), 1U);
  health_.SetServing(false);
  health_.SetServing(false);
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(id).messages().size(), 2U);
}

}  // namespace
}  // namespace weir::grpc::testing
