// The default policy, and the policies of the admin API, apply at every endpoint.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>

#include "e2e/service/fixture.h"
#include "support/store_server.h"
#include "support/tcp_server.h"
#include "weir/v1/weir.grpc.pb.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;

class Reach : public ServiceTest {
 protected:
  /// A proxy on this machine is trusted.
  void ServeBehindProxy(std::vector<std::string> more = {}) {
    const auto config = dir_.Write("weir.yaml", "trusted_proxies: [127.0.0.1]\n");
    more.insert(more.end(), {"--config", config.string()});
    Serve(more);
  }

  HttpResponse Auth(const std::string& address, const HttpHeaders& more = {}) {
    HttpHeaders headers = {{"X-Forwarded-For", address}};
    headers.insert(headers.end(), more.begin(), more.end());
    HttpClient client = Client();
    return client.Get("/v1/auth", headers);
  }

  int Make(const std::string& key, int capacity) {
    HttpClient client = Client();
    return client
        .Post("/admin/policies", R"({"key":")" + key + R"(","type":"FIXED_WINDOW","capacity":)" +
                                     std::to_string(capacity) + R"(,"windowSeconds":864000})")
        .status;
  }
};

TEST_F(Reach, TheDefaultPolicyLimitsEachAddressAtAuth) {
  ServeBehindProxy();
  const HttpResponse first = Auth("198.51.100.1");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.Header("X-RateLimit-Limit"), "100");
  EXPECT_EQ(first.Header("X-RateLimit-Remaining"), "99");
  EXPECT_TRUE(first.HasHeader("RateLimit-Policy"));
  // All of it in one request is more than ten seconds refill.
  HttpClient client = Client();
  const HttpHeaders other = {{"X-Forwarded-For", "198.51.100.3"}};
  EXPECT_EQ(client.Get("/v1/auth?cost=100", other).status, 200);
  EXPECT_EQ(client.Get("/v1/auth?cost=100", other).status, 429);
  EXPECT_EQ(Auth("198.51.100.2").Header("X-RateLimit-Remaining"), "99");
}

TEST_F(Reach, APolicyForAnAddressAUserOrAKeyIsInForceAtAuth) {
  ServeBehindProxy();
  EXPECT_EQ(Make("198.51.100.1", 1), 201);
  EXPECT_EQ(Make("ann", 2), 201);
  EXPECT_EQ(Make("secret-key", 1), 201);
  EXPECT_EQ(Auth("198.51.100.1").status, 200);
  EXPECT_EQ(Auth("198.51.100.1").status, 429);
  EXPECT_EQ(Auth("198.51.100.2").status, 200);
  for (const int expected : {200, 200, 429}) {
    EXPECT_EQ(Auth("198.51.100.3", {{"X-User-Id", "ann"}}).status, expected);
  }
  EXPECT_EQ(Auth("198.51.100.4", {{"X-API-Key", "secret-key"}}).status, 200);
  EXPECT_EQ(Auth("198.51.100.4", {{"X-API-Key", "secret-key"}}).status, 429);
  // One limit, whichever endpoint is used.
  EXPECT_THAT(Check(R"({"key":"198.51.100.1"})").body, HasSubstr(R"("allowed":false)"));
}

TEST_F(Reach, ThePolicyForOneAddressReplacesThatForAny) {
  const auto policies = dir_.Write("policies.yaml", R"(
policies:
  - name: per-ip
    match: { ip: "*" }
    quota: { fixed_window: { limit: 1, window: 100d } }
  - name: all
    match: {}
    quota: { fixed_window: { limit: 5, window: 100d } }
)");
  ServeBehindProxy({"--policies", policies.string()});
  EXPECT_EQ(Make("198.51.100.1", 3), 201);
  EXPECT_EQ(Auth("198.51.100.2").status, 200);
  EXPECT_EQ(Auth("198.51.100.2").status, 429);
  for (const int expected : {200, 200, 200, 429}) EXPECT_EQ(Auth("198.51.100.1").status, expected);
  EXPECT_EQ(Auth("198.51.100.3").status, 200);
  EXPECT_EQ(Auth("198.51.100.4").status, 429);  // the five of `all` are used up
}

TEST_F(Reach, WeirV1TakesBareKeys) {
  Serve({"--grpc", "127.0.0.1:0"});
  EXPECT_EQ(Make("user-123", 1), 201);
  const auto stub = v1::Limiter::NewStub(::grpc::CreateChannel(
      "127.0.0.1:" + std::to_string(weir_->Port("grpc")), ::grpc::InsecureChannelCredentials()));
  const auto check = [&](const std::string& key, bool both = false) {
    ::grpc::ClientContext context;
    v1::CheckRequest request;
    request.set_key(key);
    if (both) request.add_descriptors();
    v1::CheckResponse response;
    const ::grpc::Status status = stub->Check(&context, request, &response);
    return status.ok() ? std::to_string(response.verdict()) + " " + response.policy()
                       : status.error_message();
  };
  EXPECT_EQ(check("user-123"), "1 user-123");
  EXPECT_EQ(check("user-123"), "2 user-123");
  EXPECT_EQ(check("somebody"), "1 default");
  EXPECT_THAT(check("user-123", true), HasSubstr("not both"));
}

TEST_F(Reach, ThePoliciesOfASharedDatabaseReachTheProxy) {
  const auto store = StoreServer::Make("postgres");
  ServeBehindProxy({"--policy-store", store->url()});
  TcpServer upstream([](TcpConnection& connection) {
    while (true) {
      connection.ReadThrough("\r\n\r\n");
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  WeirProcess proxy({"proxy", "--upstream", "http://127.0.0.1:" + std::to_string(upstream.port()),
                     "--listen", "127.0.0.1:0", "--data", (dir_ / "proxy").string(),
                     "--policy-store", store->url(), "--trusted-proxies", "127.0.0.1",
                     "--user-header", "X-User"});
  HttpClient client(proxy.Port("proxy"));
  const auto left = [&](const std::string& address, const HttpHeaders& more = {}) {
    HttpHeaders headers = {{"X-Forwarded-For", address}};
    headers.insert(headers.end(), more.begin(), more.end());
    return std::string(client.Get("/", headers).Header("X-RateLimit-Limit"));
  };
  EXPECT_EQ(left("198.51.100.1"), "100");
  EXPECT_EQ(Make("198.51.100.1", 7), 201);
  EXPECT_EQ(Make("ann", 8), 201);
  EXPECT_TRUE(WaitUntil([&] { return left("198.51.100.1") == "7"; }));
  EXPECT_TRUE(WaitUntil([&] { return left("198.51.100.2", {{"X-User", "ann"}}) == "8"; }));
  EXPECT_EQ(left("198.51.100.2"), "100");
}

}  // namespace
}  // namespace weir::test
