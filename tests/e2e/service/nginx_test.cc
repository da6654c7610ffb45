// A real nginx with auth_request in front of an app, limited by Weir.

#include "e2e/service/fixture.h"
#include "support/nginx_server.h"

namespace weir::test {
namespace {

TEST_F(ServiceTest, NginxAsksWeirBeforeItServes) {
  const auto policies = dir_.Write("policies.yaml", R"(
policies:
  - name: per-ip
    match: { ip: "*", route: "/app*" }
    quota: { fixed_window: { limit: 3, window: 100d } }
)");
  const auto config = dir_.Write("weir.yaml", "trusted_proxies: [127.0.0.1]\n");
  Serve({"--policies", policies.string(), "--config", config.string()});
  // auth_request supports 2xx, 401 and 403, so Weir is configured to deny with 403, which becomes
  // 429 here.
  const NginxServer nginx(R"(
    location /app {
      auth_request /weir;
      auth_request_set $limit_remaining $upstream_http_x_ratelimit_remaining;
      auth_request_set $limit_retry $upstream_http_retry_after;
      error_page 403 = @limited;
      try_files /nothing @app;
    }
    location @app {
      add_header X-RateLimit-Remaining $limit_remaining;
      return 200 "the app\n";
    }
    location @limited {
      add_header Retry-After $limit_retry always;
      return 429 "limited\n";
    }
    location = /weir {
      internal;
      proxy_pass http://127.0.0.1:)" +
                          std::to_string(port_) + R"(/v1/auth?deny_status=403;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header X-Original-URI $request_uri;
      proxy_set_header X-Original-Method $request_method;
      proxy_set_header X-Forwarded-For $http_x_client;
    }
)");
  HttpClient client(nginx.port());
  for (int left = 2; left >= 0; --left) {
    const HttpResponse response = client.Get("/app/page", {{"X-Client", "198.51.100.1"}});
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "the app\n");
    EXPECT_EQ(response.Header("X-RateLimit-Remaining"), std::to_string(left));
  }
  const HttpResponse refused = client.Get("/app/page", {{"X-Client", "198.51.100.1"}});
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.body, "limited\n");
  EXPECT_FALSE(refused.Header("Retry-After").empty());
  EXPECT_EQ(client.Get("/app/page", {{"X-Client", "198.51.100.2"}}).status, 200);
}

}  // namespace
}  // namespace weir::test
