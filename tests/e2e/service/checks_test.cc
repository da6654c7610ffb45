// Checks over HTTP as seen by a client.

#include <atomic>
#include <thread>

#include "e2e/service/fixture.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Checks : public ServiceTest {};

TEST_F(Checks, ABareKeyGetsTheDefaultPolicy) {
  Serve();
  const HttpResponse response = Check(R"({"key":"user-123"})");
  EXPECT_EQ(response.status, 200);
  // Capacity 100, one taken; at 10 a second it is refilled in 100 ms.
  EXPECT_EQ(response.body,
            R"({"allowed":true,"limit":100,"remaining":99,"retryAfterMs":0,"resetAfterMs":100,)"
            R"("policy":"default"})");
  EXPECT_EQ(response.Header("Content-Type"), "application/json");
  EXPECT_EQ(response.Header("X-RateLimit-Limit"), "100");
  EXPECT_EQ(response.Header("X-RateLimit-Remaining"), "99");
  EXPECT_EQ(response.Header("X-RateLimit-Reset"), "1");
  // 100 permits at 10 a second fill in 10 seconds.
  EXPECT_EQ(response.Header("RateLimit-Policy"), "\"default\";q=100;w=10");
  EXPECT_EQ(response.Header("RateLimit"), "\"default\";r=99;t=1");
}

TEST_F(Checks, KeysHaveBucketsOfTheirOwn) {
  Serve();
  EXPECT_THAT(Check(R"({"key":"a","cost":100})").body, HasSubstr("\"remaining\":0"));
  EXPECT_THAT(Check(R"({"key":"b"})").body, HasSubstr("\"remaining\":99"));
  const HttpResponse refused = Check(R"({"key":"a","cost":50})", "/v1/check?http_status=1");
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.body, StartsWith("{\"allowed\":false,\"limit\":100,"));
  // 50 permits take 5 s at 10 a second, and some time has passed already.
  const int wait = std::stoi(std::string(refused.Header("Retry-After")));
  EXPECT_GE(wait, 1);
  EXPECT_LE(wait, 5);
}

TEST_F(Checks, DescriptorsMeetPoliciesAllOrNothing) {
  ServePolicies(R"(
policies:
  - name: per-user
    match: { user: "*" }
    quota: { fixed_window: { limit: 10, window: 100d } }
  - name: pay
    match: { user: "*", route: /v1/pay }
    quota: { fixed_window: { limit: 2, window: 100d } }
)");
  const std::string pay = R"({"descriptors":[{"user":"42","route":"/v1/pay"}]})";
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Check(pay).body, HasSubstr("\"allowed\":true"));
  const HttpResponse refused = Check(pay);
  EXPECT_THAT(refused.body, HasSubstr("\"allowed\":false"));
  EXPECT_THAT(refused.body, HasSubstr("\"policy\":\"pay\""));
  EXPECT_THAT(std::string(refused.Header("RateLimit")), HasSubstr("\"per-user\";r=8;"));
  // The denial charged nothing to per-user: 10 - 2 - 1.
  EXPECT_THAT(Check(R"({"descriptors":[[{"key":"user","value":"42"}]]})").body,
              HasSubstr("\"remaining\":7"));
}

TEST_F(Checks, ABatchIsAnsweredInOrder) {
  Serve();
  const HttpResponse response =
      Check(R"({"checks":[{"key":"a","cost":1},{"key":"a","cost":200},{"key":"a","cost":2}]})");
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.body, StartsWith("{\"results\":[{\"allowed\":true,\"limit\":100,"
                                        "\"remaining\":99,"));
  EXPECT_THAT(response.body, HasSubstr("{\"allowed\":false,\"limit\":100,\"remaining\":99,"));
  EXPECT_THAT(response.body, HasSubstr("\"remaining\":97,"));
}

TEST_F(Checks, PeekRefundAndRelease) {
  ServePolicies(R"(
policies:
  - name: jobs
    match: { job: "*" }
    quota: { concurrency: { limit: 1, lease: 1h } }
  - name: fixed
    key: fixed
    quota: { fixed_window: { limit: 5, window: 100d } }
)");
  EXPECT_THAT(Check(R"({"key":"fixed","cost":4})").body, HasSubstr("\"remaining\":1"));
  EXPECT_THAT(Check(R"({"key":"fixed","cost":2})", "/v1/peek").body,
              HasSubstr("\"allowed\":false"));
  EXPECT_THAT(Check(R"({"key":"fixed","cost":3})", "/v1/refund").body,
              HasSubstr("\"remaining\":4"));
  const std::string job = R"({"descriptors":[{"job":"j"}]})";
  const std::string held = Check(job).body;
  const std::size_t at = held.find("\"lease\":");
  ASSERT_NE(at, std::string::npos) << held;
  EXPECT_THAT(Check(job).body, HasSubstr("\"allowed\":false"));
  const std::string lease = held.substr(at, held.find_first_of(",}", at) - at);
  EXPECT_EQ(Check(R"({"descriptors":[{"job":"j"}],)" + lease + "}", "/v1/release").status, 200);
  EXPECT_THAT(Check(job).body, HasSubstr("\"allowed\":true"));
}

// More than are decided in one turn: each answer names the permits of its own bucket.
TEST_F(Checks, ManyPermitsOfOneRequestAreReleasedOneByOne) {
  ServePolicies(R"(
policies:
  - {name: jobs, match: {job: "*"}, quota: {concurrency: {limit: 1, lease: 10m}}}
)");
  constexpr int kJobs = 700;
  const auto ask = [&] {
    std::string body = R"({"checks":[)";
    for (int i = 0; i < kJobs; ++i) {
      body += (i == 0 ? "" : ",") + std::string(R"({"descriptors":[{"job":"a-job-with-number-)") +
              std::to_string(i) + R"("}]})";
    }
    return Check(body + "]}").body;
  };
  const std::string granted = ask();
  std::size_t at = 0;
  for (int i = 0; i < kJobs; ++i) {
    constexpr std::string_view kLeases = R"("leases":")";
    at = granted.find(kLeases, at);
    ASSERT_NE(at, std::string::npos) << i;
    at += kLeases.size();
    const std::string lease = granted.substr(at, granted.find('"', at) - at);
    const std::string body = R"({"descriptors":[{"job":"a-job-with-number-)" + std::to_string(i) +
                             R"("}],"leases":")" + lease + R"("})";
    EXPECT_THAT(Check(body, "/v1/release").body, HasSubstr("true")) << i;
  }
  EXPECT_THAT(ask(), Not(HasSubstr(R"("allowed":false)")));
}

TEST_F(Checks, ConcurrentClientsNeverGetMoreThanTheLimit) {
  ServePolicies(
      "policies: [{name: p, key: hot, quota: {fixed_window: {limit: 500, window: 100d}}}]");
  std::atomic<int> allowed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      HttpClient client = Client();
      for (int i = 0; i < 125; ++i) {
        if (client.Post("/v1/check?http_status=1", R"({"key":"hot"})").status == 200) ++allowed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed.load(), 500);  // of 1000
}

TEST_F(Checks, AuthTellsClientsApartByWhatTheProxySays) {
  ServePolicies(R"(
policies:
  - name: per-ip
    match: { ip: "*" }
    quota: { fixed_window: { limit: 2, window: 100d } }
)");
  HttpClient client = Client();
  const auto ask = [&](const std::string& address) {
    return client.Get("/v1/auth", {{"X-Forwarded-For", address}}).status;
  };
  // Loopback is not a trusted proxy unless configured: the header does not count.
  EXPECT_EQ(ask("198.51.100.1"), 200);
  EXPECT_EQ(ask("198.51.100.2"), 200);
  const HttpResponse refused = client.Get("/v1/auth", {{"Accept", "application/json"}});
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.body, HasSubstr("\"error\":\"Too Many Requests\""));
  EXPECT_TRUE(refused.HasHeader("Retry-After"));
  EXPECT_EQ(client.Get("/v1/auth?deny_status=403").status, 403);
}

TEST_F(Checks, RequestIdsAndTracesComeBack) {
  Serve();
  HttpClient client = Client();
  const HttpResponse response =
      client.Post("/v1/check", R"({"key":"k"})",
                  {{"X-Request-Id", "r-1"},
                   {"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}});
  EXPECT_EQ(response.Header("X-Request-Id"), "r-1");
  EXPECT_THAT(std::string(response.Header("traceparent")),
              StartsWith("00-4bf92f3577b34da6a3ce929d0e0e4736-"));
}

TEST_F(Checks, ManyPipelinedRequestsAreAnsweredInOrder) {
  ServePolicies("policies: [{name: p, key: k, quota: {fixed_window: {limit: 500, window: 100d}}}]");
  HttpClient client = Client();
  std::string all;
  const std::string body = R"({"key":"k"})";
  for (int i = 0; i < 300; ++i) {
    all += "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }
  client.SendRaw(all);
  for (int i = 1; i <= 300; ++i) {
    ASSERT_THAT(client.ReadResponse().body,
                HasSubstr("\"remaining\":" + std::to_string(500 - i) + ","));
  }
}

}  // namespace
}  // namespace weir::test
