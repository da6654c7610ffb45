// An Envoy may spend its assignment for three more seconds after its stream has ended. However
// the stream ends, that is charged: tested with an independent client of RLQS (libgrpc++), on a
// window in which nothing is refilled within the test.

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "envoy/service/rate_limit_quota/v3/rlqs.grpc.pb.h"
#include "support/cutting_proxy.h"
#include "support/http_client.h"
#include "support/store_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using envoy::service::rate_limit_quota::v3::RateLimitQuotaResponse;
using envoy::service::rate_limit_quota::v3::RateLimitQuotaService;
using envoy::service::rate_limit_quota::v3::RateLimitQuotaUsageReports;
using std::chrono::steady_clock;

constexpr std::int64_t kRate = 100;               // a second
constexpr std::int64_t kLimit = kRate * 864'000;  // in ten days
constexpr std::string_view kPolicies = R"(
domain: edge
policies:
  - name: per-user
    match: { user: "*" }
    quota: { fixed_window: { limit: 86400000, window: 10d } }
)";

/// Envoy's end of a stream.
class Envoy {
 public:
  explicit Envoy(std::uint16_t port)
      : stub_(RateLimitQuotaService::NewStub(::grpc::CreateChannel(
            "127.0.0.1:" + std::to_string(port), ::grpc::InsecureChannelCredentials()))),
        stream_(stub_->StreamRateLimitQuotas(&context_)) {
    RateLimitQuotaUsageReports reports;
    reports.set_domain("edge");
    auto& usage = *reports.add_bucket_quota_usages();
    (*usage.mutable_bucket_id()->mutable_bucket())["user"] = "anna";
    usage.set_num_requests_denied(1);
    EXPECT_TRUE(stream_->Write(reports));
  }

  /// The next assignment; false: the stream is over.
  bool Next() {
    RateLimitQuotaResponse response;
    if (!stream_->Read(&response)) return false;
    last_ = steady_clock::now();
    if (!first_) first_ = last_;
    EXPECT_EQ(response.bucket_action(0)
                  .quota_assignment_action()
                  .rate_limit_strategy()
                  .token_bucket()
                  .tokens_per_fill()
                  .value(),
              static_cast<std::uint32_t>(kRate));
    return true;
  }
  void Cancel() { context_.TryCancel(); }
  ::grpc::Status Finish() { return stream_->Finish(); }

  /// What it may have admitted when its last assignment ends: a bucket that was full at first, plus
  /// the refill until then. Weir has to allow for network latency.
  double Admitted() const {
    const std::chrono::duration<double> span = last_ - *first_;
    return static_cast<double>(kRate) * (1 + span.count() + 3);
  }
  double SecondsSinceLast() const {
    return std::chrono::duration<double>(steady_clock::now() - last_).count();
  }

 private:
  ::grpc::ClientContext context_;
  std::unique_ptr<RateLimitQuotaService::Stub> stub_;
  std::unique_ptr<::grpc::ClientReaderWriter<RateLimitQuotaUsageReports, RateLimitQuotaResponse>>
      stream_;
  std::optional<steady_clock::time_point> first_;
  steady_clock::time_point last_;
};

class RlqsEndTest : public ::testing::TestWithParam<std::string> {
 protected:
  RlqsEndTest() {
    if (GetParam() != "memory") store_ = StoreServer::Make(GetParam());
    folder_.Write("policies.yaml", kPolicies);
    Start();
  }

  void Start() {
    weir_.emplace(std::vector<std::string>{
        "serve", "--http", "127.0.0.1:0", "--resp", "off", "--grpc", "127.0.0.1:0", "--store",
        store_ == nullptr ? "memory:" : store_->url(), "--store-timeout", "5s", "--policies",
        (folder_ / "policies.yaml").string(), "--data", (folder_ / "data").string()});
  }

  std::int64_t Charged() {
    const std::string body =
        HttpClient(weir_->Port("http")).Get("/admin/explain?domain=edge&user=anna").body;
    const std::size_t at = body.find("\"remaining\":");
    EXPECT_NE(at, std::string::npos) << body;
    return kLimit - std::atoll(body.c_str() + at + 12);
  }

  /// Little is charged needlessly: the quarter of a second that an assignment may be in flight, and
  /// a second for each that was lost. On a busy machine the stream's end is noticed later.
  void ExpectCharged(const Envoy& envoy) {
    const double admitted = envoy.Admitted();
    const double lost = std::max(1.0, std::ceil(envoy.SecondsSinceLast()));
    EXPECT_TRUE(WaitUntil([&] { return static_cast<double>(Charged()) >= admitted; }))
        << Charged() << " were charged for up to " << admitted;
    EXPECT_LE(static_cast<double>(Charged()), admitted + (0.5 + lost) * kRate);
  }

  std::unique_ptr<StoreServer> store_;
  TempDir folder_;
  std::optional<WeirProcess> weir_;
};

TEST_P(RlqsEndTest, AnEnvoyThatEndsItsStream) {
  Envoy envoy(weir_->Port("grpc"));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(envoy.Next());
  envoy.Cancel();
  ExpectCharged(envoy);
}

TEST_P(RlqsEndTest, AnEnvoyWhoseConnectionIsLost) {
  CuttingProxy network(weir_->Port("grpc"));
  Envoy envoy(network.port());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(envoy.Next());
  EXPECT_TRUE(network.CutReplies());
  while (envoy.Next()) {
  }
  ExpectCharged(envoy);
}

TEST_P(RlqsEndTest, ANodeThatIsToldToStop) {
  Envoy envoy(weir_->Port("grpc"));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(envoy.Next());
  weir_->process().Signal(SIGTERM);
  int more = 0;
  while (envoy.Next()) ++more;
  // A second of grace, however often something is sent in it. The drain itself ends after 10 s.
  EXPECT_LE(more, 4);
  EXPECT_EQ(envoy.Finish().error_code(), ::grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(weir_->process().Wait(std::chrono::seconds(30)), 0);
  Start();  // to read the store's state
  ExpectCharged(envoy);
}

INSTANTIATE_TEST_SUITE_P(Stores, RlqsEndTest, ::testing::Values("memory", "redis", "postgres"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace weir::test
