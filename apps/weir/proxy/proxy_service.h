#pragma once

// What `weir proxy` is made of: the policies and the limiter of the service, with the proxy as the
// door in front of them.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "limiter/policy_limiter.h"
#include "net/reactor_pool.h"
#include "policy/policy_set.h"
#include "protocol/http/router.h"
#include "proxy/door.h"
#include "serve/stores.h"
#include "service/http_service.h"
#include "telemetry/metrics.h"
#include "weir/result.h"

namespace weir::app {

/// Everything `weir proxy` can be told.
struct ProxySettings {
  config::Config config;
  std::string listen = "127.0.0.1:8000";
  std::string admin = "off";
  std::vector<std::string> upstreams;
  /// `100/60m`: a sliding log for each client address, instead of policy files.
  std::string per_ip;
  std::string domain;  ///< empty: the only one of the policies
  std::string api_key_header = "X-API-Key";
  std::string user_header;
  proxy::Timeouts timeouts;
};

/// A running proxy.
///
/// Thread safety: for the thread that made it; what runs inside has threads of its own.
class ProxyService {
 public:
  /// Opens everything; nothing is served before Start.
  static Result<std::unique_ptr<ProxyService>> Open(const ProxySettings& settings);
  ~ProxyService();

  /// Serves from now on. Prints one line per open door.
  void Start();
  /// Reads the policy files anew; on an error everything stays as it is.
  Status Reload();
  /// Stops accepting, answers what was accepted, saves the limiter's state.
  void Stop();

 private:
  explicit ProxyService(const ProxySettings& settings);
  Status OpenLimiters();
  Status OpenProxy();
  Status OpenAdmin();
  Result<std::vector<policy::Definition>> ReadPolicies() const;
  Result<std::shared_ptr<const policy::PolicySet>> Compile(std::vector<policy::Definition> all);

  const ProxySettings settings_;
  std::string domain_;
  telemetry::Registry registry_;
  policy::PolicyIds ids_;
  std::optional<policy::LivePolicies> policies_;
  std::unique_ptr<Stores> stores_;
  std::optional<limiter::Shared> shared_;
  std::vector<std::unique_ptr<limiter::PolicyLimiter>> limiters_;
  http::Router router_;
  service::HttpOptions admin_options_;
  std::optional<proxy::ProxyDoor> door_;
  std::vector<std::unique_ptr<service::HttpWorker>> workers_;
  std::optional<service::HttpDoor> admin_door_;
  std::optional<net::ReactorPool> pool_;
  std::vector<std::string> lines_;
};

}  // namespace weir::app
