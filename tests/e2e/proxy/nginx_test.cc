// The built program in front of a real nginx.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "support/http_client.h"
#include "support/nginx_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> Args(const NginxServer& nginx, const TempDir& dir,
                              std::vector<std::string> more) {
  std::vector<std::string> args = {
      "proxy",      "--upstream", "http://127.0.0.1:" + std::to_string(nginx.port()),
      "--data",     dir.path(),   "--listen",
      "127.0.0.1:0"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(WeirProxy, WithoutFlagsAnAddressHasAHundredRequestsInAnyHour) {
  NginxServer nginx("location / { return 200 'hello'; }");
  TempDir dir;
  WeirProcess weir(Args(nginx, dir, {}));
  HttpClient client(weir.Port("proxy"));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(client.Get("/").status, 200) << i;
  const HttpResponse refused = client.Get("/");
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.body, HasSubstr("Try again in "));
  EXPECT_THAT(std::string(refused.Header("RateLimit-Policy")), HasSubstr("q=100;w=3600"));
}

TEST(WeirProxy, HowOftenItCleansUpComesFromAFile) {
  NginxServer nginx("location / { return 200 'hello'; }");
  TempDir dir;
  const auto config = dir.Write("weir.yaml",
                                "proxy: { per_ip: 2/1s }\n"
                                "cleanup: { interval: 50ms }\n")
                          .string();
  WeirProcess weir(Args(nginx, dir, {"--config", config, "--admin", "127.0.0.1:0"}));
  ASSERT_EQ(HttpClient(weir.Port("proxy")).Get("/").status, 200);
  HttpClient admin(weir.Port("admin"));
  // By default it would take an hour.
  EXPECT_TRUE(WaitUntil([&] {
    const std::string metrics = admin.Get("/metrics").body;
    return metrics.find("\nweir_keys 0\n") != std::string::npos &&
           metrics.find("\nweir_keys_created_total 1\n") != std::string::npos;
  }));
}

TEST(WeirProxy, LimitAndIntervalComeFromAFile) {
  NginxServer nginx("location / { return 200 'hello'; }");
  TempDir dir;
  for (const char* time : {"30m", "PT30M"}) {
    const auto config =
        dir.Write("weir.yaml", std::string("proxy: { per_ip: 2/") + time + " }\n").string();
    TempDir data;
    WeirProcess weir(Args(nginx, data, {"--config", config}));
    HttpClient client(weir.Port("proxy"));
    EXPECT_EQ(client.Get("/").status, 200);
    EXPECT_THAT(std::string(client.Get("/").Header("RateLimit-Policy")), HasSubstr("q=2;w=1800"));
    EXPECT_EQ(client.Get("/").status, 429);
  }
}

TEST(WeirProxy, LimitsTenThousandRequestsExactly) {
  NginxServer nginx("location / { return 200 'hello'; }");
  TempDir dir;
  WeirProcess weir(Args(nginx, dir, {"--per-ip", "6000/60m"}));
  const std::uint16_t port = weir.Port("proxy");
  std::atomic<int> allowed = 0;
  std::atomic<int> limited = 0;
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      HttpClient client(port);
      for (int i = 0; i < 1'250; ++i) {
        const HttpResponse response = client.Get("/");
        if (response.status == 200 && response.body == "hello") ++allowed;
        if (response.status == 429 && response.HasHeader("Retry-After")) ++limited;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed, 6'000);
  EXPECT_EQ(limited, 4'000);
  // Denied requests never reached the upstream.
  EXPECT_EQ(nginx.AccessLogLines(), 6'000U);
}

TEST(WeirProxy, FollowsPolicies) {
  NginxServer nginx("location / { return 200 'hello'; }");
  TempDir dir;
  const auto policies = dir.Write("policies.yaml", R"(
domain: api
policies:
  - name: per-key
    match: { api_key: "*" }
    quota: { fixed_window: { limit: 3, window: 100d } }
  - name: pay
    match: { user: "*", route: /v1/pay }
    quota: { sliding_log: { limit: 1, window: 1h } }
)");
  WeirProcess weir(Args(nginx, dir, {"--policies", policies, "--user-header", "X-User"}));
  HttpClient client(weir.Port("proxy"));
  EXPECT_FALSE(client.Get("/").HasHeader("X-RateLimit-Limit"));  // no policy applies
  EXPECT_EQ(client.Get("/", {{"X-API-Key", "k"}}).Header("RateLimit-Policy"),
            "\"per-key\";q=3;w=8640000");
  const HttpHeaders ann = {{"X-User", "ann"}, {"X-API-Key", "k"}};
  EXPECT_EQ(client.Get("/v1/pay", ann).status, 200);
  EXPECT_EQ(client.Get("/v1//pay?again", ann).status, 429);
  // That denial cost the key nothing: one of its three is left.
  EXPECT_EQ(client.Get("/other", ann).Header("X-RateLimit-Remaining"), "0");
  EXPECT_EQ(client.Get("/v1/pay", {{"X-User", "bob"}}).status, 200);
}

TEST(WeirProxy, ReloadsAChangedPolicyFileAndKeepsARightOneOverAWrong) {
  NginxServer nginx("location / { return 200 'hello'; }");
  TempDir dir;
  const auto write = [&](const std::string& limit) {
    return dir.Write("policies.yaml",
                     "policies:\n  - name: per-ip\n    match: { ip: \"*\" }\n"
                     "    quota: { fixed_window: { limit: " +
                         limit + ", window: 1d } }\n");
  };
  WeirProcess weir(Args(nginx, dir, {"--policies", write("100")}));
  HttpClient client(weir.Port("proxy"));
  EXPECT_EQ(client.Get("/").Header("X-RateLimit-Limit"), "100");
  write("200");
  EXPECT_TRUE(WaitUntil([&] { return client.Get("/").Header("X-RateLimit-Limit") == "200"; }));
  write("many");
  EXPECT_TRUE(weir.process().WaitForError("policies not reloaded"));
  EXPECT_EQ(client.Get("/").Header("X-RateLimit-Limit"), "200");
}

TEST(WeirProxy, RemembersLimitsOverARestart) {
  NginxServer nginx("location / { return 200 'hello'; }");
  TempDir dir;
  {
    WeirProcess weir(Args(nginx, dir, {"--per-ip", "2/60m"}));
    HttpClient client(weir.Port("proxy"));
    EXPECT_EQ(client.Get("/").status, 200);
    EXPECT_EQ(client.Get("/").status, 200);
    EXPECT_EQ(weir.process().Terminate(), 0);
  }
  WeirProcess weir(Args(nginx, dir, {"--per-ip", "2/60m"}));
  EXPECT_EQ(HttpClient(weir.Port("proxy")).Get("/").status, 429);
}

TEST(WeirProxy, OutlivesItsUpstream) {
  NginxServer nginx("location / { root DIR; }");
  {
    std::ofstream(nginx.dir() / "large").put('x');
    std::filesystem::resize_file(nginx.dir() / "large", 1'000'000'000);  // takes no disk space
  }
  TempDir dir;
  WeirProcess weir(Args(nginx, dir, {"--per-ip", "1000/60m"}));
  const std::uint16_t port = weir.Port("proxy");
  TcpConnection download(port);
  download.Send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(download.ReadThrough("\r\n\r\n"), HasSubstr("200 OK"));
  nginx.Kill();
  std::size_t got = 0;
  try {
    while (true) got += download.Read(65'536).size();
  } catch (const std::runtime_error&) {
  }
  EXPECT_LT(got, 1'000'000'000U);  // cut off, so the client can tell

  HttpClient client(port);
  const HttpResponse down = client.Get("/large");
  EXPECT_EQ(down.status, 502);
  EXPECT_THAT(down.body, HasSubstr("\"error\":\"Bad Gateway\""));
  nginx.Restart();
  EXPECT_EQ(client.Send("HEAD", "/large").status, 200);
}

TEST(WeirProxy, CountsWhatItDoes) {
  NginxServer nginx("location / { return 200 'hello'; }");
  TempDir dir;
  WeirProcess weir(Args(nginx, dir, {"--per-ip", "2/60m", "--admin", "127.0.0.1:0"}));
  HttpClient client(weir.Port("proxy"));
  for (int i = 0; i < 5; ++i) client.Get("/");
  HttpClient admin(weir.Port("admin"));
  EXPECT_EQ(admin.Get("/readyz").status, 200);
  const std::string metrics = admin.Get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("\nweir_allowed_total 2\n"));
  EXPECT_THAT(metrics, HasSubstr("\nweir_blocked_total 3\n"));
  EXPECT_THAT(metrics, HasSubstr("\nweir_proxy_requests_total 5\n"));
  // Nothing can be charged or refunded here.
  for (const char* path : {"/v1/check", "/v1/refund", "/v1/auth"}) {
    EXPECT_EQ(admin.Post(path, R"({"key":"x"})").status, 404) << path;
  }
}

TEST(WeirProxy, SaysWhatIsWrongWithItsFlags) {
  const auto run = [](std::vector<std::string> args) {
    WeirProcess weir(std::move(args));
    EXPECT_NE(weir.process().Wait(), 0);
    return weir.process().error_output();
  };
  TempDir dir;
  const std::string data = dir.path();
  EXPECT_THAT(run({"proxy"}), HasSubstr("--upstream"));
  EXPECT_THAT(run({"proxy", "--data", data, "--upstream", "https://a:1"}), HasSubstr("http://"));
  EXPECT_THAT(run({"proxy", "--data", data, "--upstream", "http://127.0.0.1:1", "--per-ip", "x"}),
              HasSubstr("100/60m"));
  EXPECT_THAT(run({"proxy", "--data", data, "--upstream", "http://127.0.0.1:1", "--trusted-proxies",
                   "10.0.0.0/99"}),
              HasSubstr("10.0.0.0/99"));
}

}  // namespace
}  // namespace weir::test
