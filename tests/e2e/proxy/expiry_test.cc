// A proxy with the policies of an admin API that is not running.

#include <gtest/gtest.h>

#include <string>

#include "base/instant.h"
#include "support/http_client.h"
#include "support/nginx_server.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"
#include "weir/clock.h"

namespace weir::test {
namespace {

std::string PolicyOf(std::int64_t limit, const std::string& more) {
  return R"({"key":"per-ip","type":"FIXED_WINDOW","windowSeconds":86400,"match":{"ip":"*"},)"
         R"("capacity":)" +
         std::to_string(limit) + more + "}";
}

TEST(ProxyExpiry, AnExceptionEndsThoughNoServiceRuns) {
  const RedisServer redis;
  const TempDir folder;
  const auto args = [&](std::vector<std::string> first, const char* data) {
    for (const std::string& more :
         {std::string("--store"), redis.url(), std::string("--data"), (folder / data).string()}) {
      first.push_back(more);
    }
    return first;
  };
  {
    WeirProcess service(
        args({"serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off"}, "service"));
    HttpClient http(service.Port("http"));
    ASSERT_EQ(http.Post("/admin/policies", PolicyOf(1, "")).status, 201);
    const std::string soon = FormatInstant(SystemClock::Get().Now() + 3'000'000'000);
    const HttpResponse raised = http.Send("PUT", "/admin/policies/per-ip",
                                          PolicyOf(100'000'000, ",\"expiresAt\":\"" + soon + "\""));
    ASSERT_EQ(raised.status, 200) << raised.body;
  }
  NginxServer upstream("location / { return 200 ok; }");
  WeirProcess proxy(
      args({"proxy", "--upstream", "http://127.0.0.1:" + std::to_string(upstream.port()),
            "--listen", "127.0.0.1:0"},
           "proxy"));
  HttpClient client(proxy.Port("proxy"));
  EXPECT_TRUE(WaitUntil([&] { return client.Get("/").status == 429; }));
}

}  // namespace
}  // namespace weir::test
