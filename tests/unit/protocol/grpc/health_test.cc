#include "protocol/grpc/health.h"

#include "grpc/health/v1/health.pb.h"
#include "unit/protocol/grpc/session_fixture.h"

namespace weir::grpc::testing {
namespace {

using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;

class HealthTest : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    health_.AddTo(services_);
  }

  static std::string For(const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    return Framed(request);
  }

  static HealthCheckResponse::ServingStatus StatusOf(const Answer& answer, std::size_t index) {
    HealthCheckResponse response;
    EXPECT_TRUE(response.ParseFromString(answer.messages().at(index)));
    return response.status();
  }

  // Services outlive the sessions that call them; here the session is the base class's.
  ~HealthTest() override { server_.reset(); }

  Health health_{{"weir.v1.Limiter"}};
};

TEST_F(HealthTest, CheckKnowsTheServerAndItsServices) {
  EXPECT_EQ(StatusOf(CallAndWait("/grpc.health.v1.Health/Check", For("")), 0),
            HealthCheckResponse::SERVING);
  EXPECT_EQ(StatusOf(CallAndWait("/grpc.health.v1.Health/Check", For("weir.v1.Limiter")), 0),
            HealthCheckResponse::SERVING);
  EXPECT_EQ(CallAndWait("/grpc.health.v1.Health/Check", For("other")).status(), "5");
}

TEST_F(HealthTest, CheckFollowsTheStatus) {
  health_.SetServing(false);
  EXPECT_EQ(StatusOf(CallAndWait("/grpc.health.v1.Health/Check", For("")), 0),
            HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthTest, WatchTellsTheStatusAndItsChanges) {
  const std::int32_t id = client_->Call("/grpc.health.v1.Health/Watch", For(""));
  client_->Exchange(*server_);
  EXPECT_EQ(StatusOf(client_->answer(id), 0), HealthCheckResponse::SERVING);
  EXPECT_FALSE(client_->answer(id).closed);
  health_.SetServing(true);  // no change, no message
  health_.SetServing(false);
  client_->Exchange(*server_);
  ASSERT_EQ(client_->answer(id).messages().size(), 2U);
  EXPECT_EQ(StatusOf(client_->answer(id), 1), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthTest, WatchOfAnUnknownServiceStaysOpen) {
  const std::int32_t id = client_->Call("/grpc.health.v1.Health/Watch", For("other"));
  client_->Exchange(*server_);
  EXPECT_EQ(StatusOf(client_->answer(id), 0), HealthCheckResponse::SERVICE_UNKNOWN);
  EXPECT_FALSE(client_->answer(id).closed);
}

TEST_F(HealthTest, WatchersThatWentAwayAreForgotten) {
  const std::int32_t cancelled = client_->Call("/grpc.health.v1.Health/Watch", For(""));
  const std::int32_t kept = client_->Call("/grpc.health.v1.Health/Watch", For(""));
  client_->Exchange(*server_);
  client_->Cancel(cancelled);
  client_->Exchange(*server_);
  health_.SetServing(false);
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(cancelled).messages().size(), 1U);
  EXPECT_EQ(client_->answer(kept).messages().size(), 2U);
  server_.reset();
  health_.SetServing(true);  // no watcher is left to notify
}

TEST_F(HealthTest, ALongNameIsAnswered) {
  const Answer& answer = CallAndWait("/grpc.health.v1.Health/Check", For(std::string(70'000, 'n')));
  EXPECT_EQ(answer.status(), "5");
  EXPECT_TRUE(answer.closed);
}

TEST_F(HealthTest, OneConnectionHasAFewWatchers) {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i <= Health::kMaxWatchersOfOne; ++i) {
    ids.push_back(client_->Call("/grpc.health.v1.Health/Watch", For(i % 2 == 0 ? "" : "other")));
  }
  client_->Exchange(*server_);
  EXPECT_EQ(client_->answer(ids.back()).status(), "8");
  EXPECT_FALSE(client_->answer(ids.front()).closed);
  client_->Cancel(ids.front());
  client_->Exchange(*server_);
  const std::int32_t next = client_->Call("/grpc.health.v1.Health/Watch", For(""));
  client_->Exchange(*server_);
  EXPECT_FALSE(client_->answer(next).closed);
}

TEST_F(HealthTest, AllConnectionsTogetherHaveABoundedNumberOfWatchers) {
  std::vector<std::unique_ptr<Session>> servers;
  std::vector<std::unique_ptr<H2Client>> clients;
  std::size_t watching = 0;
  for (std::size_t i = 0; i < Health::kMaxWatchers / Health::kMaxWatchersOfOne + 1; ++i) {
    Session& server = *servers.emplace_back(
        std::make_unique<Session>(services_, SessionOptions(), clock_, *this));
    H2Client& client = *clients.emplace_back(std::make_unique<H2Client>());
    for (std::size_t call = 0; call < Health::kMaxWatchersOfOne; ++call) {
      client.Call("/grpc.health.v1.Health/Watch", For(""));
    }
    client.Exchange(server);
    watching += server.open_calls();
  }
  EXPECT_EQ(watching, Health::kMaxWatchers);
}

// Calls are numbered per connection, so two of them can have the same number.
TEST_F(HealthTest, AWatcherOfAnotherConnectionIsNotForgottenWithIt) {
  Session other(services_, {}, clock_, *this);
  H2Client second;
  const std::int32_t id = client_->Call("/grpc.health.v1.Health/Watch", For(""));
  ASSERT_EQ(second.Call("/grpc.health.v1.Health/Watch", For("")), id);
  client_->Exchange(*server_);
  second.Exchange(other);
  second.Cancel(id);
  second.Exchange(other);
  health_.SetServing(false);
  client_->Exchange(*server_);
  second.Exchange(other);
  EXPECT_EQ(client_->answer(id).messages().size(), 2U);
  EXPECT_EQ(second.answer(id).messages().size(), 1U);
}

}  // namespace
}  // namespace weir::grpc::testing
