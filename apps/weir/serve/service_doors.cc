// The doors of the service, and who may do what there.

#include <utility>

#include "admin/admin_routes.h"
#include "admin/audit_json.h"
#include "admin/dashboard/dashboard.h"
#include "base/url.h"
#include "library/store_routes.h"
#include "serve/policies.h"
#include "serve/service.h"
#include "service/http_exchange.h"
#include "telemetry/log.h"
#include "telemetry/version.h"

namespace weir::app {

Status Service::OpenHttp() {
  if (Status status = OpenAccess(); !status.ok()) return status;
  if (config_.listen.http.off) return {};
  admin_.emplace(admin::AdminParts{
      *guard_, lifecycle_, *catalog_, *policy_store_, shared_->counters,
      library::StoresText(config_), WithoutSecrets(PolicyStoreUrl(config_)),
      [this](store::KeyQuery query, KeyReader::Done done) {
        stores_->ListKeys(std::move(query), std::move(done));
      },
      [this] { return stores_->CountKeys(); }, [this] { return stores_->health(); }, probes_,
      *policy_store_, *policy_changes_, *config_changes_, shared_->top, *live_, assignments_,
      stores_->FindHeld(), config_.default_for_requests()});
  routers_.resize(pool_->size());
  std::vector<service::HttpWorker*> workers;
  for (std::size_t i = 0; i < pool_->size(); ++i) {
    AddRoutes(routers_[i], *limiters_[i]);
    GuardRoutes(routers_[i]);
    http_workers_.push_back(std::make_unique<service::HttpWorker>(pool_->reactor(i), http_options_,
                                                                  routers_[i], *limiters_[i]));
    workers.push_back(http_workers_.back().get());
  }
  http_door_.emplace(std::move(workers), http_tls_);
  return Listen(*http_door_, config_.listen.http);
}

void Service::AddRoutes(http::Router& router, limiter::PolicyLimiter& limiter) {
  const auto audited = [this](std::string action, http::Handler handler) {
    return admin::Audited(*policy_store_, std::move(action), std::move(handler));
  };
  const auto operated = [this, audited](std::string action, http::Handler handler) {
    return admin::Guarded(*guard_, audited(std::move(action), std::move(handler)));
  };
  // Only changes are audited, and one of the guarded operations is a change.
  const auto flushed = [operated](http::Handler handler) {
    return operated("slots.flush", std::move(handler));
  };
  const auto changed = [this](const char* kind) {
    return [this, kind](http::Handler handler) {
      return admin::Guarded(*guard_, config_changes_->Audited(kind, std::move(handler)));
    };
  };
  service::HttpExchanges::AddRoutes(router);
  admin::AddOperations(router, lifecycle_, registry_, readiness_, probes_);
  admin::AddDashboard(router);
  admin::AddAdminRoutes(router, *guard_);
  admin::AddAdmin(router, *admin_, limiter);
  slots_->AddTo(router, flushed, changed("slots"), audited,
                [this](const http::Request& request, const std::string& config, std::size_t count) {
                  AuditClaim(request, config, count);
                });
  notify_->api().AddTo(router, flushed, changed("notify"));
  notify_->api().channels().AddTo(router, changed("notify_channel"));
  notify_->ledger().AddTo(router, {flushed, operated, changed("preferences")});
}

Status Service::OpenGrpc() {
  service::GrpcDoorOptions options;
  options.tls = grpc_tls_;
  options.assignments = &assignments_;
  options.session.max_concurrent_streams = config_.grpc.max_streams;
  options.session.max_message_bytes = config_.grpc.max_message;
  options.guard = [this](const grpc::Method& method, const grpc::Caller& caller) {
    return AdmitCall(method, caller);
  };
  options.session.request_timeout = config_.limits.request_timeout;
  options.session.write_timeout = config_.limits.write_timeout;
  options.session.stream_timeout = config_.grpc.idle_timeout;
  options.times = TimesOf(config_, config_.grpc.idle_timeout);
  options.rls.headers = config_.grpc.response_headers && config_.headers.x_ratelimit;
  options.rls.limit_header = config_.grpc.limit_header;
  options.rls.remaining_header = config_.grpc.remaining_header;
  options.rls.reset_header = config_.grpc.reset_header;
  options.rls.dynamic_metadata = config_.grpc.dynamic_metadata;
  grpc_door_.emplace(
      pool_->size(),
      [this](net::Reactor& reactor) -> limiter::Limiter& { return *limiters_[reactor.index()]; },
      std::move(options));
  return Listen(*grpc_door_, config_.listen.grpc);
}

Status Service::OpenResp() {
  service::RespOptions options;
  options.times = TimesOf(config_, config_.resp.idle_timeout);
  options.tls = resp_tls_;
  options.hooks.administrator = [this](std::string_view address,
                                       std::string_view password) -> std::optional<std::string> {
    if (!guard_->Admits(address, password)) return std::nullopt;
    const access::Caller caller{.address = address, .key = password, .door = "resp", .quiet = true};
    const std::string holder = guard_->gate().Admit(caller, access::Operation::kOperate).Holder();
    return (holder.empty() ? "" : holder + " from ") + std::string(address);
  };
  access::Gate& gate = guard_->gate();
  // One gate for all keys, so that guesses at any of them are slowed down together.
  if (gate.has_keys() || !config_.resp.keys.empty()) {
    options.hooks.knows = [&gate](std::string_view address, std::string_view password) {
      return gate.Knows({.address = address, .key = password, .door = "resp"},
                        access::Operation::kCheck) ||
             gate.Knows({.address = address, .key = password, .door = "resp", .quiet = true},
                        access::Operation::kStore);
    };
  }
  if (!gate.IsOpen(access::Operation::kCheck) || !config_.resp.keys.empty()) {
    options.hooks.authenticate = [](std::string_view) { return false; };  // only what `knows` knows
  }
  if (!gate.IsOpen(access::Operation::kGiveBack)) {
    options.hooks.gives_back = [&gate](std::string_view address, std::string_view password) {
      return gate
          .Admit({.address = address, .key = password, .door = "resp", .quiet = true},
                 access::Operation::kGiveBack)
          .admitted();
    };
  }
  // Its users may do anything to any key: without keys, only those that the admin API admits.
  options.hooks.stores = [this, &gate](std::string_view address, std::string_view password) {
    if (!gate.has_keys()) return guard_->Admits(address, password);
    return gate
        .Admit({.address = address, .key = password, .door = "resp", .quiet = true},
               access::Operation::kStore)
        .admitted();
  };
  options.hooks.by_subject = [this, &gate](std::string_view address, std::string_view subject) {
    const access::Caller caller{.address = address, .subject = subject, .door = "resp"};
    resp::Service::Login login;
    login.known = gate.Knows(caller, access::Operation::kCheck);
    login.gives_back = gate.Knows(caller, access::Operation::kGiveBack);
    if (gate.Knows(caller, access::Operation::kStore)) login.known = login.stores = true;
    if (gate.Knows(caller, access::Operation::kOperate) && guard_->Admits(address, {}, subject)) {
      login.known = true;
      login.administrator = "certificate " + std::string(subject);
    }
    return login;
  };
  options.hooks.on_give_back = [this](const std::string& who, std::string_view action,
                                      std::string_view key) {
    audit_tally_->Note(who, action, key.empty() ? std::string() : "key:" + std::string(key), 1);
  };
  options.hooks.on_reset = [this](const std::string& who, std::string_view key,
                                  const Status& outcome) { AuditReset(who, key, outcome); };
  options.hooks.version = telemetry::kVersion;
  resp_door_.emplace(
      pool_->size(),
      [this](net::Reactor& reactor) -> limiter::Limiter& { return *limiters_[reactor.index()]; },
      std::move(options));
  return Listen(*resp_door_, config_.listen.resp);
}

void Service::AuditReset(const std::string& who, std::string_view key, const Status& outcome) {
  Audit({.who = who,
         .action = "key.reset",
         .target = "key:" + std::string(key),
         .after = outcome.ok() ? "" : R"({"status":"UNKNOWN"})"});
}

}  // namespace weir::app
