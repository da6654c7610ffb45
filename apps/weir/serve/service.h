#pragma once

// The composition root of `weir serve`: the only place where its concrete backends meet the rest.

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "access/gate.h"
#include "access/jwks_source.h"
#include "access/tokens.h"
#include "admin/admin.h"
#include "admin/admin_guard.h"
#include "admin/audit_tally.h"
#include "admin/audit_trimmer.h"
#include "admin/operations.h"
#include "admin/policy_store.h"
#include "base/folder_lock.h"
#include "config/config.h"
#include "drivers/sqlite/database.h"
#include "limiter/assignments.h"
#include "limiter/policy_limiter.h"
#include "net/door_metrics.h"
#include "net/reactor_pool.h"
#include "net/stream.h"
#include "net/tls.h"
#include "policy/catalog.h"
#include "policy/file_watcher.h"
#include "protocol/http/router.h"
#include "serve/managed_policies.h"
#include "serve/notify_service.h"
#include "serve/stores.h"
#include "serve/tracing.h"
#include "service/grpc_door.h"
#include "service/http_service.h"
#include "service/resp_door.h"
#include "slots/api/slots_api.h"
#include "slots/claim_audit.h"
#include "slots/retention.h"
#include "slots/slot_store.h"
#include "telemetry/metrics.h"
#include "weir/result.h"

namespace weir::app {

/// How long the peers of a door may take, and how long they may be idle.
net::Stream::Times TimesOf(const config::Config& config, std::chrono::milliseconds idle);

/// A running service.
///
/// Thread safety: for the thread that created it; its parts have threads of their own.
class Service {
 public:
  /// Opens everything; nothing is served before Start.
  static Result<std::unique_ptr<Service>> Open(config::Config config);
  ~Service();

  /// Starts to serve. Prints one line per open door.
  void Start();
  /// Reloads the policy files and certificates; invalid ones change nothing and are logged.
  void Reload();
  /// Stops accepting, answers what was accepted, saves the limiter's state.
  void Stop();

 private:
  explicit Service(config::Config config);
  Status OpenData();
  Status OpenPolicies();
  Status OpenLimiter();
  Status OpenTls();
  Status OpenSlots();
  Status OpenNotify();
  Status OpenAdmin();
  Status OpenHttp();
  Status OpenGrpc();
  Status OpenResp();
  Status OpenAccess();
  void AddRoutes(http::Router& router, limiter::PolicyLimiter& limiter);
  void GuardRoutes(http::Router& router);
  service::HttpOptions::Authorize Authorized(access::Operation operation) const;
  service::HttpOptions::Authorize AuthorizedToGiveBack() const;
  std::optional<http::Response> RefuseForged(const http::Request& request, std::string_view remote,
                                             const access::Admission& admission) const;
  std::string WhoGaveBack(const http::Request& request, std::string_view remote) const;
  Status AdmitCall(const grpc::Method& method, const grpc::Caller& caller);
  http::Router::Witness AuditOf(const http::Request& request, access::Operation operation);
  void Audit(policy::AuditEntry entry);
  void AuditClaim(const http::Request& request, const std::string& config, std::size_t count);
  void AuditNote(const slots::ClaimNote& note, const slots::ClaimAudit::Written& written);
  void AuditReset(const std::string& who, std::string_view key, const Status& outcome);
  void AddMetrics();
  Status Listen(net::Door& door, const config::Address& address);
  void LogReady() const;
  void LogWhenReady();
  admin::RunningTotals ReadTotals() const;
  std::optional<admin::StoreHealth> Readiness() const;
  std::array<net::DoorFigures, 3> Doors() const;
  Status OpenManagedPolicies();
  void ReloadPolicies();
  void NoteEnvoyCharge();
  std::vector<policy::yaml::Problem> Reloaded(
      const std::function<std::vector<policy::yaml::Problem>()>& load);
  void LogReload(const std::vector<policy::yaml::Problem>& problems) const;

  // In the order in which they need each other: destruction goes from the doors down to the data.
  const config::Config config_;
  service::HttpOptions http_options_;
  telemetry::Registry registry_;
  admin::Lifecycle lifecycle_;
  std::optional<FolderLock> data_lock_;
  std::unique_ptr<sqlite::Database> database_;
  std::optional<policy::Catalog> catalog_;
  std::unique_ptr<policy::PolicyStore> policy_store_;
  std::unique_ptr<slots::SlotStore> slot_store_;
  std::unique_ptr<Stores> stores_;
  std::unique_ptr<Tracing> tracing_;  // null: nothing is traced
  std::optional<limiter::Shared> shared_;
  limiter::Assignments assignments_;
  std::vector<std::unique_ptr<limiter::PolicyLimiter>> limiters_;
  std::unique_ptr<access::Tokens> tokens_;
  std::unique_ptr<access::JwksSource> jwks_;
  std::optional<admin::AdminGuard> guard_;
  std::optional<admin::PolicyChanges> policy_changes_;
  std::optional<admin::AuditTrimmer> audit_trimmer_;
  std::optional<admin::AuditTally> audit_tally_;
  std::mutex reload_mutex_;
  std::set<std::string> noted_files_;  // NoteEnvoyCharge; guarded by reload_mutex_
  std::optional<admin::ConfigChanges> config_changes_;
  std::optional<admin::AdminParts> admin_;
  std::optional<slots::SlotsApi> slots_;
  std::unique_ptr<NotifyService> notify_;
  std::vector<admin::Probe> probes_;  // of the parts whose databases may be down
  std::shared_ptr<net::TlsContext> http_tls_;
  std::shared_ptr<net::TlsContext> grpc_tls_;
  std::shared_ptr<net::TlsContext> resp_tls_;
  std::optional<slots::Retirement> retirement_;
  std::optional<slots::ClaimAudit> claim_audit_;
  const admin::StoreHealthOf readiness_ = [this] { return Readiness(); };
  std::vector<http::Router> routers_;  // one per reactor, with handlers of its own
  std::vector<std::unique_ptr<service::HttpWorker>> http_workers_;
  std::optional<service::HttpDoor> http_door_;
  std::optional<service::GrpcDoor> grpc_door_;
  std::optional<service::RespDoor> resp_door_;
  std::optional<net::ReactorPool> pool_;
  std::optional<admin::LiveTotals> live_;
  std::unique_ptr<policy::FileWatcher> watcher_;
  std::unique_ptr<ManagedPolicies> managed_;  // null: no control plane provides policies
  std::vector<std::string> lines_;
  std::string dashboard_;             ///< its address, for a browser; empty: there is none
  std::atomic<bool> awaited_{false};  ///< it listens and is not ready yet
};

}  // namespace weir::app
