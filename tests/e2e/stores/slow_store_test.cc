// The gRPC endpoint and the proxy while the store hangs: every request is answered in time
// according to on_store_error, the answer says so, and its connection stays open.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "envoy/service/ratelimit/v3/rls.grpc.pb.h"
#include "support/http_client.h"
#include "support/redis_server.h"
#include "support/stopwatch.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"
#include "weir/v1/weir.grpc.pb.h"

namespace weir::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;
namespace rls = ::envoy::service::ratelimit::v3;

constexpr std::string_view kPolicies = R"(
domain: d
policies:
  - { name: a, match: { rule: allow }, quota: { fixed_window: { limit: 100, window: 3650d } }, on_store_error: allow }
  - { name: b, match: { rule: deny }, quota: { fixed_window: { limit: 100, window: 3650d } }, on_store_error: deny }
  - { name: c, match: { rule: local }, quota: { fixed_window: { limit: 100, window: 3650d } }, on_store_error: local }
  - { name: a-user, match: { user: allow }, quota: { fixed_window: { limit: 100, window: 3650d } }, on_store_error: allow }
  - { name: b-user, match: { user: deny }, quota: { fixed_window: { limit: 100, window: 3650d } }, on_store_error: deny }
  - { name: c-user, match: { user: local }, quota: { fixed_window: { limit: 100, window: 3650d } }, on_store_error: local }
)";
// The store's own timeout plus slack for a busy machine.
constexpr auto kTimeout = 250ms;
constexpr auto kSlack = 500ms;

class SlowStoreTest : public ::testing::Test {
 protected:
  std::vector<std::string> Args(std::vector<std::string> args) {
    const std::vector<std::string> more = {
        "--store", redis_.url(), "--store-timeout",
        "250ms",   "--policies", dir_.Write("policies.yaml", kPolicies).string(),
        "--data",  dir_ / "data"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }

  /// The duration of `call`; too long is a failure.
  template <typename Call>
  static auto InTime(Call call) {
    const Stopwatch watch;
    auto answer = call();
    EXPECT_LT(watch.elapsed(), kTimeout + kSlack);
    return answer;
  }

  TempDir dir_;
  RedisServer redis_;
};

class GrpcOnSlowStore : public SlowStoreTest {
 protected:
  void Start(std::vector<std::string> env = {"LIMIT_RESPONSE_HEADERS_ENABLED=true"}) {
    SpawnOptions options;
    options.env = std::move(env);
    weir_ = std::make_unique<WeirProcess>(
        Args({"serve", "--http", "off", "--grpc", "127.0.0.1:0", "--resp", "off"}), options);
    const auto channel = ::grpc::CreateChannel("127.0.0.1:" + std::to_string(weir_->Port("grpc")),
                                               ::grpc::InsecureChannelCredentials());
    stub_ = v1::Limiter::NewStub(channel);
    envoy_ = rls::RateLimitService::NewStub(channel);
  }

  v1::CheckResponse Check(const std::string& rule) {
    ::grpc::ClientContext context;
    v1::CheckRequest request;
    request.set_domain("d");
    v1::Entry* entry = request.add_descriptors()->add_entries();
    entry->set_key("rule");
    entry->set_value(rule);
    v1::CheckResponse response;
    const ::grpc::Status status = stub_->Check(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  rls::RateLimitResponse AskAsEnvoy(const std::string& rule) {
    ::grpc::ClientContext context;
    rls::RateLimitRequest request;
    request.set_domain("d");
    auto* entry = request.add_descriptors()->add_entries();
    entry->set_key("rule");
    entry->set_value(rule);
    rls::RateLimitResponse response;
    EXPECT_TRUE(envoy_->ShouldRateLimit(&context, request, &response).ok());
    return response;
  }

  /// The header `x-ratelimit-degraded` of an answer to Envoy, and whether it was admitted.
  std::pair<std::string, bool> Envoy(const std::string& rule) {
    const rls::RateLimitResponse response = AskAsEnvoy(rule);
    std::string degraded;
    for (const auto& header : response.response_headers_to_add()) {
      if (header.key() == "x-ratelimit-degraded") degraded = header.value();
    }
    return {degraded, response.overall_code() == rls::RateLimitResponse::OK};
  }

  std::unique_ptr<WeirProcess> weir_;
  std::unique_ptr<v1::Limiter::Stub> stub_;
  std::unique_ptr<rls::RateLimitService::Stub> envoy_;
};

TEST_F(GrpcOnSlowStore, AnswersByOnStoreErrorAndGoesOn) {
  Start();
  for (const char* rule : {"allow", "deny", "local"}) {
    EXPECT_EQ(Check(rule).remaining(), 99);
    EXPECT_FALSE(Check(rule).degraded());
    EXPECT_EQ(Envoy(rule), (std::pair<std::string, bool>("", true)));
  }
  redis_.Pause();
  for (int round = 0; round < 3; ++round) {
    const v1::CheckResponse allow = InTime([&] { return Check("allow"); });
    EXPECT_EQ(allow.verdict(), v1::ALLOWED);
    EXPECT_TRUE(allow.degraded());
    const v1::CheckResponse deny = InTime([&] { return Check("deny"); });
    EXPECT_EQ(deny.verdict(), v1::LIMITED);
    EXPECT_EQ(deny.retry_after_ns(), 1'000'000'000);
    EXPECT_TRUE(deny.degraded());
    const v1::CheckResponse local = InTime([&] { return Check("local"); });
    EXPECT_EQ(local.verdict(), v1::ALLOWED);
    EXPECT_EQ(local.limit(), 10);                 // a tenth of 100
    EXPECT_EQ(local.remaining(), 9 - 2 * round);  // Envoy checks the same key below
    EXPECT_TRUE(local.degraded());
    EXPECT_EQ(InTime([&] { return Envoy("allow"); }),
              (std::pair<std::string, bool>("allow", true)));
    EXPECT_EQ(InTime([&] { return Envoy("deny"); }), (std::pair<std::string, bool>("deny", false)));
    EXPECT_EQ(InTime([&] { return Envoy("local"); }),
              (std::pair<std::string, bool>("local", true)));
  }
  redis_.Resume();
  const Stopwatch watch;
  EXPECT_TRUE(WaitUntil([&] { return !Check("allow").degraded(); }));
  EXPECT_LT(watch.elapsed(), 2s);
  // Three were charged before; requests in the store's buffers when it resumed may be, too.
  const v1::CheckResponse after = Check("deny");
  EXPECT_LE(after.remaining(), 96);
  EXPECT_GE(after.remaining(), 96 - 6);
  EXPECT_EQ(Check("deny").remaining(), after.remaining() - 1);
}

// Clients of Envoy get no header unless both switches allow it.
TEST_F(GrpcOnSlowStore, OneSwitchIsForAllHeadersOfAnswersToEnvoy) {
  const std::string on = "LIMIT_RESPONSE_HEADERS_ENABLED=true";
  const auto names = [this] {
    std::vector<std::string> found;
    const rls::RateLimitResponse response = AskAsEnvoy("deny");
    for (const auto& header : response.response_headers_to_add()) found.push_back(header.key());
    return found;
  };
  const std::vector<std::vector<std::string>> off = {{}, {on, "WEIR_HEADERS_X_RATELIMIT=false"}};
  for (const std::vector<std::string>& settings : off) {
    Start(settings);
    EXPECT_THAT(names(), IsEmpty());
    redis_.Pause();
    EXPECT_THAT(names(), IsEmpty());
    redis_.Resume();
    weir_.reset();
  }
  Start({on});
  EXPECT_THAT(names(), ElementsAre("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"));
  redis_.Pause();
  EXPECT_THAT(names(), Contains("x-ratelimit-degraded"));
  redis_.Resume();
}

TEST_F(SlowStoreTest, TheProxyAnswersByOnStoreErrorAndGoesOn) {
  TcpServer upstream([](TcpConnection& connection) {
    while (true) {
      connection.ReadThrough("\r\n\r\n");
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    }
  });
  WeirProcess proxy(
      Args({"proxy", "--upstream", "http://127.0.0.1:" + std::to_string(upstream.port()),
            "--listen", "127.0.0.1:0", "--user-header", "X-User"}));
  HttpClient client(proxy.Port("proxy"));
  const auto get = [&client](const char* user) { return client.Get("/", {{"X-User", user}}); };
  for (const char* user : {"allow", "deny", "local"}) {
    const HttpResponse answer = get(user);
    EXPECT_EQ(answer.body, "hi");
    EXPECT_EQ(answer.Header("X-RateLimit-Remaining"), "99");
    EXPECT_FALSE(answer.HasHeader("X-RateLimit-Degraded"));
  }
  const int connection = client.connection().fd();
  redis_.Pause();
  for (int round = 0; round < 3; ++round) {
    const HttpResponse allow = InTime([&] { return get("allow"); });
    EXPECT_EQ(allow.body, "hi");
    EXPECT_EQ(allow.Header("X-RateLimit-Degraded"), "allow");
    const HttpResponse deny = InTime([&] { return get("deny"); });
    EXPECT_EQ(deny.status, 429);
    EXPECT_EQ(deny.Header("Retry-After"), "1");
    EXPECT_EQ(deny.Header("X-RateLimit-Degraded"), "deny");
    const HttpResponse local = InTime([&] { return get("local"); });
    EXPECT_EQ(local.body, "hi");
    EXPECT_EQ(local.Header("X-RateLimit-Degraded"), "local");
    EXPECT_EQ(local.Header("X-RateLimit-Remaining"), std::to_string(9 - round));
  }
  redis_.Resume();
  const Stopwatch watch;
  EXPECT_TRUE(WaitUntil([&] { return !get("allow").HasHeader("X-RateLimit-Degraded"); }));
  EXPECT_LT(watch.elapsed(), 2s);
  EXPECT_EQ(get("deny").status, 200);
  EXPECT_EQ(client.connection().fd(), connection);  // one connection through all of it
}

}  // namespace
}  // namespace weir::test
