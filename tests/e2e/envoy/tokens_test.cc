// The configuration from docs/guide/llm-tokens.md, unmodified, in a real Envoy.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "support/envoy_server.h"
#include "support/http_client.h"
#include "support/nginx_server.h"
#include "support/paths.h"
#include "support/ports.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

/// The first YAML block of the page that contains `mark`.
std::string Block(const std::string& page, std::string_view mark) {
  constexpr std::string_view kFence = "```yaml\n";
  for (std::size_t at = 0; (at = page.find(kFence, at)) != std::string::npos;) {
    at += kFence.size();
    std::string block = page.substr(at, page.find("```", at) - at);
    if (block.find(mark) != std::string::npos) return block;
  }
  ADD_FAILURE() << "no YAML block of the page holds " << mark;
  return {};
}

std::string Indented(const std::string& text, std::size_t by) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.append(by, ' ').append(text, at, end - at).append("\n");
    at = end + 1;
  }
  return out;
}

constexpr std::string_view kBefore = R"(static_resources:
  listeners:
    - name: llm
      address: { socket_address: { address: 127.0.0.1, port_value: LISTEN } }
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: llm
                http_filters:
                  - name: envoy.filters.http.ratelimit
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
                      domain: llm
                      failure_mode_deny: true
                      timeout: 10s
                      rate_limit_service:
                        transport_api_version: V3
                        grpc_service: { envoy_grpc: { cluster_name: weir } }
                  - name: envoy.filters.http.router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
                route_config:
                  virtual_hosts:
                    - name: all
                      domains: ["*"]
                      routes:
                        - match: { prefix: / }
                          route: { cluster: upstream }
)";

constexpr std::string_view kClusters = R"(  clusters:
    - name: upstream
      type: STATIC
      load_assignment:
        cluster_name: upstream
        endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: UPSTREAM } } } }] }]
    - name: weir
      type: STATIC
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: { http2_protocol_options: {} }
      load_assignment:
        cluster_name: weir
        endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: LIMITS } } } }] }]
)";

void Replace(std::string& text, std::string_view what, std::uint16_t port) {
  text.replace(text.find(what), what.size(), std::to_string(port));
}

TEST(LlmTokens, TheGuidesConfigurationEndsABudgetForEachUserAndModel) {
  const std::string page = ReadFile(SourcePath("docs/guide/llm-tokens.md"));
  TempDir folder;
  folder.Write("policies.yaml", Block(page, "# policies.yaml"));
  WeirProcess weir({"serve", "--http", "off", "--resp", "off", "--grpc", "127.0.0.1:0",
                    "--policies", (folder / "policies.yaml").string(), "--data",
                    folder.path().string()});
  NginxServer upstream("location / { add_header x-tokens 600000; return 200 ok; }");
  const std::uint16_t port = FreePort();
  std::string config = std::string(kBefore) + Indented(Block(page, "apply_on_stream_done"), 26) +
                       std::string(kClusters);
  Replace(config, "LISTEN", port);
  Replace(config, "UPSTREAM", upstream.port());
  Replace(config, "LIMITS", weir.Port("grpc"));
  const EnvoyServer envoy(config, port);

  HttpClient client(port);
  const auto ask = [&](const std::string& user, const std::string& model) {
    return client.Get("/", {{"x-user", user}, {"x-model", model}}).status;
  };
  // A million a day: two answers of 600,000 exceed it, and the third request is denied. The
  // report may still be in flight when the response arrives.
  EXPECT_EQ(ask("42", "small"), 200);
  int served = 1;
  EXPECT_TRUE(WaitUntil([&] {
    const int status = ask("42", "small");
    if (status == 200) ++served;
    return status == 429;
  }));
  EXPECT_GE(served, 2);
  EXPECT_LE(served, 20);
  // Another user, and the same user's other model, have separate budgets; that of the large
  // model is spent by one answer.
  EXPECT_EQ(ask("43", "small"), 200);
  EXPECT_EQ(ask("42", "large"), 200);
  EXPECT_TRUE(WaitUntil([&] { return ask("42", "large") == 429; }));
  EXPECT_EQ(envoy.log(), "");
}

}  // namespace
}  // namespace weir::test
