#include "serve/service.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <utility>

#include "base/lasting.h"
#include "library/store_routes.h"
#include "plaintext.h"
#include "serve/policies.h"
#include "serve/pool.h"
#include "slots/postgres/slot_store.h"
#include "slots/sqlite/slot_store.h"
#include "telemetry/log.h"
#include "telemetry/version.h"

namespace weir::app {
namespace {

using telemetry::Level;
using telemetry::Log;

service::HttpOptions HttpOptionsOf(const config::Config& config) {
  service::HttpOptions options;
  options.limits.header_bytes = static_cast<std::uint32_t>(config.limits.max_header);
  options.limits.large_body_bytes = config.limits.max_body;
  options.limits.body_bytes = std::min(options.limits.body_bytes, config.limits.max_body);
  options.headers.x_ratelimit = config.headers.x_ratelimit;
  options.headers.ietf = config.headers.ietf;
  options.auth.trusted_proxies = config.trusted_proxies;
  options.auth.grouping.v6_prefix = config.ipv6_prefix;
  options.auth.user_header = config.auth.user_header;
  options.auth.api_key_header = config.auth.api_key_header;
  options.auth.target = static_cast<service::AuthTarget>(config.auth.target);
  options.auth.default_applies = config.default_for_requests();
  options.times = TimesOf(config, config.limits.idle_timeout);
  return options;
}

bool IsPostgres(std::string_view url) {
  return url.starts_with("postgres://") || url.starts_with("postgresql://");
}

}  // namespace

net::Stream::Times TimesOf(const config::Config& config, std::chrono::milliseconds idle) {
  return {.greeting = config.limits.handshake_timeout,
          .idle = idle,
          .request = config.limits.request_timeout,
          .write = config.limits.write_timeout};
}

Service::Service(config::Config config)
    : config_(std::move(config)), http_options_(HttpOptionsOf(config_)) {}

Service::~Service() {
  managed_.reset();
  watcher_.reset();
  live_.reset();
  if (pool_) pool_->Stop();
  // Everything is closed first, and only then is anything destroyed, the reactors last: each store
  // has answers under way, and their callbacks may use any other. A closed store refuses.
  if (config_changes_) config_changes_->Close();
  if (slots_) slots_->Close();
  if (claim_audit_) claim_audit_->Close();
  if (slot_store_) slot_store_->Close();
  if (notify_) notify_->Close();
  if (audit_tally_) audit_tally_->FlushAll();
  if (database_) database_->Close();
  if (policy_store_) policy_store_->Close();
  if (stores_) stores_->Close();
  notify_.reset();
  slot_store_.reset();
}

Result<std::unique_ptr<Service>> Service::Open(config::Config config) {
  std::unique_ptr<Service> service(new Service(std::move(config)));
  service->pool_.emplace(PoolOf(service->config_, 1));
  using Step = Status (Service::*)();
  for (const Step step :
       {&Service::OpenData, &Service::OpenPolicies, &Service::OpenLimiter, &Service::OpenTls,
        &Service::OpenSlots, &Service::OpenNotify, &Service::OpenAdmin, &Service::OpenHttp,
        &Service::OpenGrpc, &Service::OpenResp}) {
    if (Status status = (*service.*step)(); !status.ok()) return status.error();
  }
  service->AddMetrics();
  return service;
}

Status Service::OpenData() {
  std::error_code error;
  std::filesystem::create_directories(config_.data, error);
  if (error) {
    return Error{CodeOfOpening(error),
                 "data: cannot create " + config_.data + ": " + error.message()};
  }
  auto lock = FolderLock::Take(config_.data);
  if (!lock) return lock.error();
  data_lock_.emplace(std::move(*lock));
  auto database = sqlite::Database::Open({.path = config_.data + "/weir.db"});
  if (!database) return database.error();
  database_ = std::move(*database);
  return {};
}

Status Service::OpenLimiter() {
  auto stores = Stores::Open(config_, config_.data + "/limits.snapshot", *pool_, *catalog_,
                             library::SharesLimits(config_));
  if (!stores) return stores.error();
  stores_ = std::move(*stores);
  auto tracing = Tracing::Open(config_);
  if (!tracing) return tracing.error();
  tracing_ = std::move(*tracing);
  limiter::Fallback::Options fallback;
  fallback.share = config_.local_share;
  shared_.emplace(catalog_->live(), catalog_->ids(), fallback);
  shared_->deny_unmatched = config_.deny_unmatched;
  shared_->observe = ObserverOptionsOf(config_, tracing_.get());
  for (std::size_t i = 0; i < pool_->size(); ++i) {
    limiters_.push_back(std::make_unique<limiter::PolicyLimiter>(*shared_, stores_->Take(i)));
  }
  return {};
}

Status Service::OpenTls() {
  if (!config_.tls.enabled()) return {};
  const net::TlsFiles files{config_.tls.cert, config_.tls.key, config_.tls.client_ca};
  const auto told = [](const Status& status) {
    if (status.ok()) return Log(Level::kInfo, "certificates reloaded");
    Log(Level::kError, "certificates not reloaded",
        {{"error", std::string_view(status.error().message)}});
  };
  struct Wanted {
    std::shared_ptr<net::TlsContext>& context;
    std::vector<std::string> protocols;
  };
  for (const Wanted& wanted :
       {Wanted{http_tls_, {"http/1.1"}}, Wanted{grpc_tls_, {"h2"}}, Wanted{resp_tls_, {}}}) {
    auto context = net::TlsContext::Load(files, wanted.protocols, told);
    if (!context) return context.error();
    wanted.context = *context;
  }
  return {};
}

Status Service::OpenSlots() {
  if (IsPostgres(config_.slots.store)) {
    WarnOfPlaintext("slots.store", config_.slots.store);
    slots::postgres::Options options;
    options.url = config_.slots.store;
    slot_store_ = std::make_unique<slots::postgres::PostgresSlotStore>(std::move(options));
  } else if (config_.slots.store == "sqlite:") {
    auto store = slots::sqlite::SqliteSlotStore::Open(*database_);
    if (!store) return store.error();
    slot_store_ = std::move(*store);
  } else {
    return Error{Code::kInvalidArgument, "slots.store: must be sqlite: or postgres://…"};
  }
  slots_.emplace(*slot_store_);
  retirement_.emplace(*slot_store_,
                      slots::RetentionOptions{config_.slots.keep, config_.slots.keep_ids});
  probes_.push_back({"slots", [this] { return slots_->watch().up(); }});
  return {};
}

Status Service::OpenNotify() {
  auto notify = NotifyService::Open(config_, *database_);
  if (!notify) return notify.error();
  notify_ = std::move(*notify);
  probes_.push_back({"notify", [this] { return notify_->up(); }});
  return {};
}

Status Service::Listen(net::Door& door, const config::Address& address) {
  if (address.off) return {};
  const auto endpoint = pool_->Listen(door, address.ToString());
  if (!endpoint) return endpoint.error();
  lines_.push_back("listening " + std::string(door.name()) + " " + net::FormatEndpoint(*endpoint));
  if (door.name() == "http") {
    const bool anywhere = endpoint->address().is_unspecified();
    dashboard_ = (http_tls_ ? "https://" : "http://") +
                 (anywhere ? "localhost:" + std::to_string(endpoint->port())
                           : net::FormatEndpoint(*endpoint)) +
                 "/";
  }
  return {};
}

Status Service::OpenAdmin() {
  policy_changes_.emplace(*policy_store_, *catalog_);
  audit_tally_.emplace(*policy_store_);
  audit_trimmer_.emplace(*policy_store_,
                         admin::AuditTrimmer::Keep{config_.audit.keep, config_.audit.age});
  claim_audit_.emplace(*slot_store_, [this](const slots::ClaimNote& note, const auto& written) {
    AuditNote(note, written);
  });
  config_changes_.emplace(*policy_store_);
  config_changes_->Add(slots_->configs());
  config_changes_->Add(notify_->api().limits());
  config_changes_->Add(notify_->api().channels().limits());
  config_changes_->Add(notify_->ledger().preferences());
  live_.emplace(admin::LiveTotals::Options{.read = [this] { return ReadTotals(); },
                                           .on_second =
                                               [this](Nanos now) {
                                                 LogWhenReady();
                                                 shared_->top.Collect(now);
                                                 policy_changes_->EndExpired(now);
                                                 audit_trimmer_->OnSecond(now);
                                                 audit_tally_->Flush();
                                                 slots_->watch().OnSecond(now);
                                                 retirement_->OnSecond(now);
                                                 claim_audit_->OnSecond(now);
                                               }});
  return {};
}

admin::RunningTotals Service::ReadTotals() const {
  const limiter::CheckCounts checks = shared_->counters.Checks();
  admin::RunningTotals totals{.allowed = checks.allowed, .limited = checks.limited};
  for (const net::DoorFigures& door : Doors()) {
    for (const net::DoorMetrics* part : door.parts) {
      for (std::size_t i = 0; i < totals.latency.size(); ++i) {
        totals.latency[i] += part->latency.bucket(i);
      }
    }
  }
  return totals;
}

std::array<net::DoorFigures, 3> Service::Doors() const {
  net::DoorFigures http{"http", {}};
  for (const auto& worker : http_workers_) http.parts.push_back(&worker->metrics().checks);
  return {std::move(http), grpc_door_->Figures(), resp_door_->Figures()};
}

std::optional<admin::StoreHealth> Service::Readiness() const {
  // A node that has never seen the policies would allow what they limit.
  if (!policy_store_->health().known || (managed_ && !managed_->known())) {
    return admin::StoreHealth{.up = false, .serving = false, .policies_known = false};
  }
  return stores_->health();
}

void Service::AddMetrics() {
  registry_.Add(telemetry::CollectProcess);
  registry_.Add(
      [this](telemetry::TextWriter& out) { admin::CollectDecisions(shared_->counters, out); });
  registry_.Add([this](telemetry::TextWriter& out) { notify_->api().Collect(out); });
  registry_.Add([this](telemetry::TextWriter& out) {
    slots_->watch().Collect(out);
    out.Counter("weir_slots_archived_total", "Events this node moved to the archive.");
    out.Sample(retirement_->archived());
    out.Counter("weir_slots_archive_dropped_total", "Events this node deleted from the archive.");
    out.Sample(retirement_->dropped());
  });
  registry_.Add([this](telemetry::TextWriter& out) { admin::CollectConnections(*pool_, out); });
  registry_.Add([this](telemetry::TextWriter& out) {
    std::vector<const service::HttpWorker*> workers;
    for (const auto& worker : http_workers_) workers.push_back(worker.get());
    service::CollectHttp(workers, out);
    net::CollectDoors(Doors(), out);
  });
  registry_.Add([this](telemetry::TextWriter& out) {
    stores_->Collect(out);
    if (tracing_) tracing_->exporter().Collect(out);
    if (managed_) managed_->Collect(out);
    assignments_.Collect(out);
    admin::CollectReloads(catalog_->status(), out);
    out.Counter("weir_wrong_keys_total", "Requests with a wrong key, on all protocols.");
    out.Sample(guard_->gate().wrong_keys());
    admin::CollectPolicyStore(policy_store_->health(), out);
  });
}

void Service::Start() {
  policy_changes_->EndExpired(SystemClock::Get().Now());
  live_->Start();
  pool_->Start();
  lifecycle_.SetReady(true);
  for (const std::string& line : lines_) std::cout << line << '\n';
  std::cout.flush();
  const std::string why = admin::WhyNotReady(Readiness());
  if (why.empty()) return LogReady();
  Log(Level::kWarn, "listening, not ready", {{"why", std::string_view(why)}});
  awaited_ = true;
}

void Service::LogReady() const {
  Log(Level::kInfo, "ready", {{"dashboard", std::string_view(dashboard_)}});
}

/// Once, if it was not ready at startup.
void Service::LogWhenReady() {
  if (!awaited_ || !admin::WhyNotReady(Readiness()).empty()) return;
  awaited_ = false;
  LogReady();
}

void Service::Reload() {
  ReloadPolicies();
  for (const auto& context : {http_tls_, grpc_tls_, resp_tls_}) {
    if (context != nullptr) (void)context->Reload();
  }
}

void Service::Stop() {
  lifecycle_.SetReady(false);
  live_->Stop();
  stores_->Drain();
  if (!pool_->Drain(config_.limits.drain_timeout)) {
    Log(Level::kWarn, "drain timed out; closed the remaining connections");
  }
  pool_->Stop();
  stores_->Close();
  if (tracing_) tracing_->exporter().Stop();
}

}  // namespace weir::app
