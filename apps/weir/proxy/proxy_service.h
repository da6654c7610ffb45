#pragma once

// The parts of `weir proxy`: the policies and the limiter of the service, with the proxy as the
// door in front of them.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admin/live_totals.h"
#include "admin/policy_changes.h"
#include "admin/policy_store.h"
#include "base/folder_lock.h"
#include "config/config.h"
#include "drivers/sqlite/database.h"
#include "limiter/policy_limiter.h"
#include "net/reactor_pool.h"
#include "policy/catalog.h"
#include "protocol/http/router.h"
#include "proxy/door.h"
#include "serve/stores.h"
#include "serve/tracing.h"
#include "service/http_service.h"
#include "telemetry/metrics.h"
#include "weir/result.h"

namespace weir::app {

/// A running proxy.
///
/// Thread safety: for the thread that created it; its parts have threads of their own.
class ProxyService {
 public:
  /// Opens everything; nothing is served before Start.
  static Result<std::unique_ptr<ProxyService>> Open(config::Config config);
  ~ProxyService();

  /// Starts to serve. Prints one line per open door.
  void Start();
  /// Reloads the policy files; on an error nothing changes.
  Status Reload();
  /// Stops accepting, answers what was accepted, saves the limiter's state.
  void Stop();

 private:
  explicit ProxyService(config::Config config);
  Status OpenData();
  Status OpenPolicies();
  Status OpenPolicyDatabase();
  Status OpenLimiters();
  Status OpenProxy();
  Status OpenUpstreams(proxy::ProxyOptions& options);
  Status OpenAdmin();
  Status LoadFiles();

  const config::Config config_;
  std::string domain_;
  telemetry::Registry registry_;
  std::optional<FolderLock> data_lock_;
  std::unique_ptr<sqlite::Database> database_;
  std::optional<policy::Catalog> catalog_;
  std::unique_ptr<policy::PolicyStore> policy_store_;
  std::optional<admin::PolicyChanges> policy_changes_;
  std::optional<admin::LiveTotals> seconds_;  // ends expired policies
  std::unique_ptr<Stores> stores_;
  std::unique_ptr<Tracing> tracing_;  // null: nothing is traced
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
