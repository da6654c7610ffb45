#include "proxy/proxy_service.h"

#include <filesystem>
#include <iostream>
#include <set>
#include <utility>

#include "admin/operations.h"
#include "base/error.h"
#include "base/lasting.h"
#include "library/store_routes.h"
#include "net/listener.h"
#include "policy/domains.h"
#include "policy/policy_file.h"
#include "serve/policies.h"
#include "serve/pool.h"
#include "telemetry/log.h"

namespace weir::app {
namespace {

using telemetry::Level;
using telemetry::Log;

/// The limit of each client address if none is configured.
constexpr std::string_view kDefaultPerIp = "100/60m";

/// `100/60m` → a sliding log. The configuration has validated the syntax.
Result<policy::Definition> PerIpPolicy(std::string_view text) {
  const auto slash = text.find('/');
  const std::string yaml =
      "policies:\n  - name: per-ip\n    match: { ip: \"*\" }\n    quota: { sliding_log: { limit: " +
      std::string(text.substr(0, slash)) + ", window: " + std::string(text.substr(slash + 1)) +
      " } }\n";
  std::vector<policy::yaml::Problem> problems;
  std::vector<policy::Definition> made = policy::ParsePolicies(yaml, "proxy.per_ip", problems);
  if (!problems.empty()) return Invalid(policy::yaml::ToString(problems));
  return std::move(made.front());
}

static_assert(proxy::kMessageDomain == policy::kMessageDomain);

/// The only domain of the requests' policies, if there is only one.
Result<std::string> OnlyDomain(const policy::PolicySet& set) {
  std::set<std::string> domains;
  for (const policy::Policy& policy : set.policies()) domains.insert(policy.definition.domain);
  domains.erase(std::string(proxy::kMessageDomain));
  if (domains.size() > 1) {
    return Invalid("the policies have several domains; choose one with --domain");
  }
  return domains.empty() ? std::string(policy::kDefaultDomain) : *domains.begin();
}

proxy::Timeouts TimeoutsOf(const config::Config::Proxy& settings) {
  proxy::Timeouts timeouts;
  timeouts.idle = settings.idle_timeout;
  timeouts.header = settings.header_timeout;
  timeouts.connect = settings.connect_timeout;
  timeouts.stall = settings.stall_timeout;
  timeouts.tunnel = settings.tunnel_timeout;
  timeouts.release = settings.release_timeout;
  return timeouts;
}

void LogReload(const Status& status) {
  if (status.ok()) return Log(Level::kInfo, "certificates reloaded");
  Log(Level::kError, "certificates not reloaded",
      {{"error", std::string_view(status.error().message)}});
}

http::Response Text(int status, std::string_view type, std::string body) {
  http::Response response;
  response.status = status;
  response.content_type = type;
  response.body = std::move(body);
  return response;
}

}  // namespace

ProxyService::ProxyService(config::Config config) : config_(std::move(config)) {}

ProxyService::~ProxyService() {
  if (!pool_) return;
  pool_->Stop();
  seconds_.reset();
  if (policy_store_) policy_store_->Close();
  if (stores_) stores_->Close();
  if (door_) door_->Clear();
}

Result<std::unique_ptr<ProxyService>> ProxyService::Open(config::Config config) {
  std::unique_ptr<ProxyService> service(new ProxyService(std::move(config)));
  constexpr std::size_t kDescriptors = 2;  // of a client and of its upstream
  service->pool_.emplace(PoolOf(service->config_, kDescriptors));
  using Step = Status (ProxyService::*)();
  for (const Step step :
       {&ProxyService::OpenData, &ProxyService::OpenPolicies, &ProxyService::OpenLimiters,
        &ProxyService::OpenProxy, &ProxyService::OpenAdmin}) {
    if (const Status status = (*service.*step)(); !status) return status.error();
  }
  return service;
}

Status ProxyService::OpenData() {
  std::error_code error;
  std::filesystem::create_directories(config_.data, error);
  if (error) {
    return Error{CodeOfOpening(error), "data " + config_.data + ": " + error.message()};
  }
  // A service may use the same folder: it keeps other files there.
  auto lock = FolderLock::Take(config_.data, "proxy.lock");
  if (!lock) return lock.error();
  data_lock_.emplace(std::move(*lock));
  return {};
}

Status ProxyService::OpenPolicies() {
  policy::CompileOptions options{config_.default_policy,
                                 config_.local_share,
                                 config_.lenient,
                                 library::StoreNames(config_),
                                 !library::OnlyMemory(config_),
                                 {config_.region.term, config_.region.lends}};
  std::vector<policy::Definition> built_in;
  if (!config_.proxy.per_ip.empty()) {
    auto per_ip = PerIpPolicy(config_.proxy.per_ip);
    if (!per_ip) return per_ip.error();
    built_in.push_back(std::move(*per_ip));
  }
  if (!config_.default_policy_written) {
    auto per_ip = PerIpPolicy(kDefaultPerIp);
    if (!per_ip) return per_ip.error();
    per_ip->match.clear();
    per_ip->has_match = false;
    per_ip->source = "built in";
    options.default_policy = std::move(*per_ip);
  }
  catalog_.emplace(std::move(options), std::move(built_in));
  if (Status loaded = LoadFiles(); !loaded) return loaded;
  const auto only = OnlyDomain(*catalog_->live().Current());
  if (config_.proxy.domain.empty() && !only) return only.error();
  domain_ = config_.proxy.domain.empty() ? *only : config_.proxy.domain;
  WarnOfMisfits(config_, *catalog_->live().Current());
  return OpenPolicyDatabase();
}

/// Policies of the admin API reach a proxy through the database in which services keep them.
Status ProxyService::OpenPolicyDatabase() {
  if (PolicyStoreUrl(config_) == "sqlite:") return {};
  auto database = sqlite::Database::Open({.path = config_.data + "/proxy.db"});
  if (!database) return database.error();
  database_ = std::move(*database);
  auto store = OpenPolicyStore(config_, *database_, *catalog_);
  if (!store) return store.error();
  policy_store_ = std::move(*store);
  policy_changes_.emplace(*policy_store_, *catalog_);
  seconds_.emplace(admin::LiveTotals::Options{
      .read = [] { return admin::RunningTotals{}; },
      .on_second = [this](Nanos now) { policy_changes_->EndExpired(now); }});
  return {};
}

Status ProxyService::LoadFiles() {
  const auto problems = catalog_->LoadFiles(config_.policies);
  if (problems.empty()) return {};
  return Invalid(policy::yaml::ToString(problems));
}

Status ProxyService::OpenLimiters() {
  auto stores = Stores::Open(config_, config_.data + "/proxy-limits.snapshot", *pool_, *catalog_,
                             !library::OnlyMemory(config_));
  if (!stores) return stores.error();
  stores_ = std::move(*stores);
  shared_.emplace(
      catalog_->live(), catalog_->ids(),
      limiter::Fallback::Options{.max_keys = config_.max_keys, .share = config_.local_share});
  auto tracing = Tracing::Open(config_);
  if (!tracing) return tracing.error();
  tracing_ = std::move(*tracing);
  shared_->deny_unmatched = config_.deny_unmatched;
  shared_->observe = ObserverOptionsOf(config_, tracing_.get());
  for (std::size_t i = 0; i < pool_->size(); ++i) {
    limiters_.push_back(std::make_unique<limiter::PolicyLimiter>(*shared_, stores_->Take(i)));
  }
  return {};
}

Status ProxyService::OpenUpstreams(proxy::ProxyOptions& options) {
  const config::Config::Proxy& settings = config_.proxy;
  bool secure = false;
  for (const std::string& url : settings.upstreams) {
    auto upstream = proxy::ResolveUpstream(url);
    if (!upstream) return upstream.error();
    secure = secure || upstream->tls;
    options.upstreams.push_back(std::move(*upstream));
  }
  if (!secure) return {};
  auto tls = net::TlsClientContext::Load({settings.upstream_tls_ca, settings.upstream_tls_cert,
                                          settings.upstream_tls_key, settings.upstream_tls_verify});
  if (!tls) return Error{tls.error().code, "proxy.upstream_" + tls.error().message};
  options.upstream_tls = std::move(*tls);
  return {};
}

Status ProxyService::OpenProxy() {
  const config::Config::Proxy& settings = config_.proxy;
  proxy::ProxyOptions options;
  if (Status status = OpenUpstreams(options); !status) return status;
  if (config_.tls.enabled()) {
    auto tls = net::TlsContext::Load({config_.tls.cert, config_.tls.key, config_.tls.client_ca},
                                     {"http/1.1"}, LogReload);
    if (!tls) return tls.error();
    options.tls = *tls;
  }
  options.trusted_proxies = config_.trusted_proxies;
  options.grouping.v6_prefix = config_.ipv6_prefix;
  options.domain = domain_;
  options.api_key_header = settings.api_key_header;
  options.user_header = settings.user_header;
  // Written policies say whom they limit; other requests are limited only if that is configured.
  const bool has_policies = !config_.policies.empty() || !settings.per_ip.empty();
  options.default_applies =
      config_.default_policy_written || (!has_policies && config_.default_for_requests());
  options.upgrades = settings.upgrades;
  options.websocket_messages = settings.websocket_messages;
  options.headers = {config_.headers.x_ratelimit, config_.headers.ietf};
  options.timeouts = TimeoutsOf(settings);
  door_.emplace(std::move(options));
  for (std::size_t i = 0; i < pool_->size(); ++i) {
    door_->AddReactor(pool_->reactor(i), limiters_[i].get());
  }
  const auto endpoint = pool_->Listen(*door_, settings.listen);
  if (!endpoint) return endpoint.error();
  lines_.push_back("listening proxy " + net::FormatEndpoint(*endpoint));
  return {};
}

Status ProxyService::OpenAdmin() {
  if (config_.proxy.admin == "off") return {};
  registry_.Add(telemetry::CollectProcess);
  registry_.Add(
      [this](telemetry::TextWriter& out) { admin::CollectDecisions(shared_->counters, out); });
  registry_.Add([this](telemetry::TextWriter& out) { admin::CollectConnections(*pool_, out); });
  registry_.Add([this](telemetry::TextWriter& out) { proxy::CollectProxy(*door_, out); });
  registry_.Add([this](telemetry::TextWriter& out) {
    stores_->Collect(out);
    if (tracing_) tracing_->exporter().Collect(out);
    admin::CollectReloads(catalog_->status(), out);
    if (policy_store_) admin::CollectPolicyStore(policy_store_->health(), out);
  });
  router_.Add("GET", "/metrics", [this](const http::Request&, const http::Reply& reply) {
    reply(Text(200, "text/plain; version=0.0.4; charset=utf-8", registry_.Render()));
  });
  const auto ready = [](const http::Request&, const http::Reply& reply) {
    reply(Text(200, "text/plain", "ok\n"));
  };
  router_.Add("GET", "/healthz", ready);
  router_.Add("GET", "/readyz", ready);
  std::vector<service::HttpWorker*> workers;
  for (std::size_t i = 0; i < pool_->size(); ++i) {
    workers_.push_back(std::make_unique<service::HttpWorker>(pool_->reactor(i), admin_options_,
                                                             router_, *limiters_[i]));
    workers.push_back(workers_.back().get());
  }
  admin_door_.emplace(std::move(workers));
  const auto endpoint = pool_->Listen(*admin_door_, config_.proxy.admin);
  if (!endpoint) return endpoint.error();
  lines_.push_back("listening admin " + net::FormatEndpoint(*endpoint));
  return {};
}

void ProxyService::Start() {
  if (seconds_) seconds_->Start();
  pool_->Start();
  for (const std::string& line : lines_) std::cout << line << '\n';
  std::cout.flush();
}

Status ProxyService::Reload() {
  Status loaded = LoadFiles();
  if (loaded.ok()) WarnOfMisfits(config_, *catalog_->live().Current());
  return loaded;
}

void ProxyService::Stop() {
  stores_->Drain();
  if (!pool_->Drain(config_.limits.drain_timeout)) {
    Log(Level::kWarn, "drain timed out; closed the remaining connections");
  }
  pool_->Stop();
  seconds_.reset();
  if (policy_store_) policy_store_->Close();
  stores_->Close();
  door_->Clear();
  if (tracing_) tracing_->exporter().Stop();
}

}  // namespace weir::app
