// Several concurrency policies on one check: the permits of all of them are released together,
// through every endpoint and on every kind of store.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "support/http_client.h"
#include "support/store_server.h"
#include "support/tcp_connection.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"
#include "weir/v1/weir.grpc.pb.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

// Long leases: nothing expires within the test.
constexpr std::string_view kPolicies = R"(
policies:
  - { name: own, match: { user: "*" }, quota: { concurrency: { limit: 1, lease: 1h } } }
  - { name: all, match: {}, quota: { concurrency: { limit: 2, lease: 2h } } }
  - { name: job, key: job, quota: { concurrency: { limit: 1, lease: 1h } } }
)";

class LeasesTest : public ::testing::TestWithParam<std::string> {
 protected:
  LeasesTest() {
    if (GetParam() != "memory") store_ = StoreServer::Make(GetParam());
    url_ = store_ == nullptr ? "memory:" : store_->url();
    policies_ = dir_.Write("policies.yaml", kPolicies);
  }

  std::vector<std::string> Args(std::vector<std::string> args, const std::string& data) const {
    const std::vector<std::string> more = {"--store",    url_,      "--store-timeout", "5s",
                                           "--policies", policies_, "--data",          dir_ / data};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }

  WeirProcess Serve(const std::string& data) const {
    return WeirProcess(
        Args({"serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:0"},
             data));
  }

  static std::string Body(const std::string& user, const std::string& leases = {}) {
    return R"({"descriptors":[{"user":")" + user + R"("}])" +
           (leases.empty() ? "" : R"(,"leases":")" + leases + "\"") + "}";
  }

  /// The text of field `leases`; two permits are 2 * 24 digits.
  static std::string LeasesOf(const HttpResponse& response) {
    constexpr std::string_view kMark = "\"leases\":\"";
    const std::size_t at = response.body.find(kMark);
    EXPECT_NE(at, std::string::npos) << response.body;
    if (at == std::string::npos) return {};
    return response.body.substr(at + kMark.size(), 48);
  }

  TempDir dir_;
  std::unique_ptr<StoreServer> store_;
  std::string url_;
  std::string policies_;
};

TEST_P(LeasesTest, OverHttp) {
  WeirProcess one = Serve("one");
  HttpClient client(one.Port("http"));
  const std::string a = LeasesOf(client.Post("/v1/check", Body("a")));
  const std::string b = LeasesOf(client.Post("/v1/check", Body("b")));
  EXPECT_THAT(a, MatchesRegex("[0-9a-f]{48}"));
  EXPECT_THAT(client.Post("/v1/check", Body("c")).body, HasSubstr(R"("allowed":false)"));
  EXPECT_THAT(client.Post("/v1/release", Body("a", a)).body, HasSubstr(R"("released":true)"));
  EXPECT_THAT(client.Post("/v1/release", Body("a", a)).body, HasSubstr(R"("released":false)"));
  const std::string again = LeasesOf(client.Post("/v1/check", Body("a")));
  EXPECT_THAT(client.Post("/v1/check", Body("c")).body, HasSubstr(R"("allowed":false)"));
  for (const std::string hostile : {"7", "zz", "' or 1=1"}) {
    const HttpResponse refused = client.Post("/v1/release", Body("a", hostile));
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr("leases: must be the string that the check returned"));
  }
  if (store_ != nullptr) {
    // Any node may release what another one granted.
    WeirProcess two = Serve("two");
    HttpClient other(two.Port("http"));
    EXPECT_THAT(other.Post("/v1/release", Body("b", b)).body, HasSubstr(R"("released":true)"));
    EXPECT_THAT(other.Post("/v1/check", Body("b")).body, HasSubstr(R"("allowed":true)"));
  }
  EXPECT_THAT(client.Post("/v1/release", Body("a", again)).body, HasSubstr(R"("released":true)"));

  // The same check by a proxy: the client is in the request's fields. No user: only `all`.
  const HttpResponse auth = client.Get("/v1/auth");
  EXPECT_EQ(auth.status, 200);
  const std::string held(auth.Header("X-RateLimit-Leases"));
  EXPECT_THAT(held, MatchesRegex("[0-9a-f]{24}"));
  const HttpResponse back = client.Get("/v1/auth?release=" + held);
  EXPECT_EQ(back.status, 200);
  EXPECT_THAT(back.body, HasSubstr(R"("released":true)"));
  EXPECT_EQ(client.Get("/v1/auth?release=7").status, 400);
}

TEST_P(LeasesTest, OverGrpcAndResp) {
  WeirProcess weir = Serve("one");
  const auto stub = v1::Limiter::NewStub(::grpc::CreateChannel(
      "127.0.0.1:" + std::to_string(weir.Port("grpc")), ::grpc::InsecureChannelCredentials()));
  const auto descriptor = [](const std::string& user) {
    v1::Descriptor made;
    v1::Entry* entry = made.add_entries();
    entry->set_key("user");
    entry->set_value(user);
    return made;
  };
  const auto check = [&](const std::string& user) {
    ::grpc::ClientContext context;
    v1::CheckRequest request;
    *request.add_descriptors() = descriptor(user);
    v1::CheckResponse response;
    EXPECT_TRUE(stub->Check(&context, request, &response).ok());
    return response;
  };
  const auto release = [&](const std::string& user, const std::string& leases) {
    ::grpc::ClientContext context;
    v1::ReleaseRequest request;
    *request.add_descriptors() = descriptor(user);
    request.set_leases(leases);
    v1::ReleaseResponse response;
    EXPECT_TRUE(stub->Release(&context, request, &response).ok());
    return response.released();
  };
  const v1::CheckResponse a = check("a");
  EXPECT_EQ(a.leases().size(), 48U);
  EXPECT_EQ(check("a").verdict(), v1::LIMITED);
  check("b");
  EXPECT_EQ(check("c").verdict(), v1::LIMITED);
  EXPECT_TRUE(release("a", a.leases()));
  EXPECT_FALSE(release("a", a.leases()));
  EXPECT_EQ(check("c").verdict(), v1::ALLOWED);

  // A bare key matches one policy, so its lease is the only one.
  TcpConnection resp(weir.Port("resp"));
  resp.Send("WEIR.CHECK job\r\n");
  const std::string granted = "*8\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:3600\r\n$3\r\njob\r\n";
  EXPECT_EQ(resp.Read(granted.size()), granted);
  std::string lease = resp.ReadThrough("\r\n");
  EXPECT_THAT(lease, StartsWith(":"));
  lease = lease.substr(1, lease.size() - 3);
  EXPECT_EQ(resp.ReadThrough("\r\n"), ":0\r\n");  // not an estimate
  resp.Send("WEIR.CHECK job\r\n");
  EXPECT_THAT(resp.ReadThrough("job\r\n:0\r\n:0\r\n"), StartsWith("*8\r\n:1\r\n"));
  resp.Send("WEIR.RELEASE job " + lease + "\r\nWEIR.RELEASE job " + lease + "\r\n");
  EXPECT_EQ(resp.Read(8), ":1\r\n:0\r\n");
}

TEST_P(LeasesTest, TheProxyGivesThemBackWhenTheResponseEnds) {
  std::atomic<bool> open = false;
  TcpServer upstream([&open](TcpConnection& connection) {
    while (true) {
      const std::string head = connection.ReadThrough("\r\n\r\n");
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1");
      if (head.starts_with("GET /die")) return;
      if (head.starts_with("GET /wait") && !WaitUntil([&open] { return open.load(); })) return;
      connection.Send("2");
    }
  });
  WeirProcess proxy(
      Args({"proxy", "--upstream", "http://127.0.0.1:" + std::to_string(upstream.port()),
            "--listen", "127.0.0.1:0", "--user-header", "X-User"},
           "proxy"));
  const std::uint16_t port = proxy.Port("proxy");
  const auto status = [](HttpClient& client, const char* user) {
    return client.Get("/", {{"X-User", user}}).status;
  };
  HttpClient slow(port);
  HttpClient quick(port);
  slow.SendRaw("GET /wait HTTP/1.1\r\nHost: h\r\nX-User: a\r\n\r\n");
  slow.connection().ReadThrough("\r\n\r\n1");  // it is in progress
  EXPECT_EQ(status(quick, "a"), 429);
  // One after the other on one connection: each finds what the one before released, though both
  // need a permit of their own and one of `all`, which has one left.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(status(quick, "b"), 200);
  open = true;
  slow.connection().ReadThrough("2");
  const auto free = [&](const char* user) {
    return WaitUntil([&] { return status(quick, user) == 200; });
  };
  EXPECT_TRUE(free("a"));

  // The upstream dies in the middle of its response, then the client does.
  HttpClient cut(port);
  cut.SendRaw("GET /die HTTP/1.1\r\nHost: h\r\nX-User: a\r\n\r\n");
  cut.connection().ReadAll();
  EXPECT_TRUE(free("a"));
  open = false;
  HttpClient gone(port);
  gone.SendRaw("GET /wait HTTP/1.1\r\nHost: h\r\nX-User: a\r\n\r\n");
  gone.connection().ReadThrough("\r\n\r\n1");
  EXPECT_EQ(status(quick, "a"), 429);
  gone.Disconnect();
  open = true;
  EXPECT_TRUE(free("a"));
  EXPECT_EQ(status(quick, "b"), 200);
}

INSTANTIATE_TEST_SUITE_P(Stores, LeasesTest, ::testing::Values("memory", "redis", "postgres"),
                         [](const auto& store) { return store.param; });

}  // namespace
}  // namespace weir::test
