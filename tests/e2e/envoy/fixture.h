#pragma once

// A real Envoy in front of a real upstream (nginx), with Weir as its rate limit service.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/envoy_server.h"
#include "support/http_client.h"
#include "support/nginx_server.h"
#include "support/paths.h"
#include "support/ports.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::test {

/// The limits of the tests below. Days, so that no window ends during a test.
inline constexpr std::string_view kLimits = R"(
domain: edge
descriptors:
  - key: remote_address
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: masked_remote_address
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: user
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: query
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: plan
    value: slow
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: plan
    value: twice
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: stage
    value: reported
    rate_limit: { unit: day, requests_per_unit: 1000000 }
  - key: stage
    value: told
    rate_limit: { unit: day, requests_per_unit: 1000000 }
  - key: plan
    value: both
    rate_limit: { unit: day, requests_per_unit: 1000000 }
  - key: plan
    value: hosted
    rate_limit: { unit: day, requests_per_unit: 4 }
  - key: query_match
    value: debug
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: source_cluster
    value: edge-proxies
    descriptors:
      - key: destination_cluster
        value: upstream
        rate_limit: { unit: day, requests_per_unit: 2 }
  - key: header_match
    value: bots
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: tier
    value: gold
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: tier
    value: silver
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: tier
    value: iron
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: tier
    value: bronze
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: tier
    value: none
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: zone
    value: north
    rate_limit: { unit: day, requests_per_unit: 1000000 }
  - key: generic_key
    value: anyone
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: header_match
    value: nameless
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: hits
    rate_limit: { unit: day, requests_per_unit: 6 }
  - key: network
    value: office
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: method
    value: GET
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: spent
    rate_limit: { unit: day, requests_per_unit: 100 }
  - key: service
    value: one
    quota_mode: true
    metadata: { name: one }
    rate_limit: { unit: day, requests_per_unit: 1 }
  - key: service
    value: two
    quota_mode: true
    metadata: { name: two }
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: model
    value: small
    quota_mode: true
    metadata: { name: small }
    rate_limit: { unit: day, requests_per_unit: 1 }
  - key: model
    value: large
    quota_mode: true
    metadata: { name: large }
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: stage
    value: first
    rate_limit: { unit: day, requests_per_unit: 1000000 }
  - key: stage
    value: second
    rate_limit: { unit: day, requests_per_unit: 2 }
)";

inline constexpr std::string_view kOthers = R"(
domain: other
descriptors:
  - key: user
    rate_limit: { unit: day, requests_per_unit: 1 }
)";

inline constexpr std::string_view kBudgets = R"(
domain: edge
policies:
  - name: tokens
    chain: [{ tokens: "*" }]
    overdraw: true
    quota: { fixed_window: { limit: 100, window: 1d } }
  - name: five-minutes
    chain: [{ plan: five-minutes }]
    quota: { fixed_window: { limit: 2, window: 5m } }
)";

inline std::string Replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

/// Weir, nginx and Envoy. Envoy has two listeners: one admits requests that Weir cannot decide, the
/// other rejects them.
class EnvoyTest : public ::testing::Test {
 protected:
  /// `settings`: more arguments for Weir; `transport`: how Envoy connects to it, as YAML of a
  /// cluster.
  void Start(std::string_view timeout = "10s", std::vector<std::string> settings = {},
             std::string_view transport = "") {
    limits_.Write("edge.yaml", kLimits);
    limits_.Write("other.yaml", kOthers);
    limits_.Write("budgets.yml", kBudgets);
    settings_ = std::move(settings);
    grpc_port_ = FreePort();
    StartWeir();
    std::string config(kHead);
    const std::string listener = ReadFile(SourcePath("tests/e2e/envoy/listener.yaml"));
    const auto add = [&](std::string_view name, std::uint16_t port, std::string_view deny) {
      std::string text = Replaced(listener, "NAME", name);
      text = Replaced(std::move(text), "PORT", std::to_string(port));
      text = Replaced(std::move(text), "DENY", deny);
      config += Replaced(std::move(text), "TIMEOUT", timeout);
    };
    add("open", open_port_, "false");
    add("closed", closed_port_, "true");
    config += "  clusters:\n" + Cluster("upstream", upstream_.port(), "");
    config += Cluster("weir", grpc_port_, transport);
    envoy_.emplace(config, open_port_);
  }

  void StartWeir() {
    std::vector<std::string> args = {"serve",
                                     "--http",
                                     "127.0.0.1:0",
                                     "--resp",
                                     "off",
                                     "--grpc",
                                     "127.0.0.1:" + std::to_string(grpc_port_),
                                     "--policies",
                                     limits_.path().string(),
                                     "--data",
                                     data_.path().string()};
    args.insert(args.end(), settings_.begin(), settings_.end());
    weir_.emplace(std::move(args));
    ASSERT_EQ(weir_->Port("grpc"), grpc_port_);
  }

  static std::string Cluster(const std::string& name, std::uint16_t port,
                             std::string_view transport) {
    return "    - name: " + name + R"(
      type: STATIC
      connect_timeout: 10s
      metadata: { filter_metadata: { test.cluster: { tier: bronze } } }
      load_assignment:
        cluster_name: )" +
           name + R"(
        endpoints:
          - metadata: { filter_metadata: { test.locality: { zone: north } } }
            lb_endpoints:
              - endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: )" +
           std::to_string(port) + " } } }\n" + (name == "weir" ? std::string(kHttp2) : "") +
           std::string(transport);
  }

  HttpResponse Get(std::string_view target, const HttpHeaders& headers = {}) {
    return HttpClient(open_port_).Get(target, headers);
  }

  /// The statuses of three requests, of which two are allowed.
  std::vector<int> Three(std::string_view target, const HttpHeaders& headers = {}) {
    HttpClient client(open_port_);
    std::vector<int> statuses;
    for (int i = 0; i < 3; ++i) statuses.push_back(client.Get(target, headers).status);
    return statuses;
  }

  /// What is left of the limit selected by this query of /admin/explain, as JSON.
  std::string Left(const std::string& query) {
    const std::string body =
        HttpClient(weir_->Port("http")).Get("/admin/explain?domain=edge&" + query).body;
    const std::size_t at = body.find("\"remaining\":");
    return at == std::string::npos ? body : body.substr(at, body.find_first_of(",}", at) - at);
  }

  // Envoy 1.40 accepts the action `dynamic_metadata` only with this setting.
  static constexpr std::string_view kHead = R"(
node: { id: test, cluster: edge-proxies }
layered_runtime:
  layers: [{ name: old, static_layer: { envoy.features.enable_all_deprecated_features: true } }]
static_resources:
  listeners:
)";

  static constexpr std::string_view kHttp2 = R"(
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: { http2_protocol_options: {} }
)";

  TempDir limits_;
  TempDir data_;
  NginxServer upstream_{"location / { add_header x-tokens 60; return 200 ok; }"};
  std::vector<std::string> settings_;
  std::uint16_t grpc_port_ = 0;
  const std::uint16_t open_port_ = FreePort();
  const std::uint16_t closed_port_ = FreePort();
  std::optional<WeirProcess> weir_;
  std::optional<EnvoyServer> envoy_;
};

}  // namespace weir::test
