#include "proxy/proxy_service.h"

#include <filesystem>
#include <iostream>
#include <set>
#include <utility>

#include "net/listener.h"
#include "policy/duration.h"
#include "policy/policy_file.h"
#include "telemetry/log.h"

namespace weir::app {
namespace {

using telemetry::Level;
using telemetry::Log;

Error Invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

/// One policy for each client address.
std::string PerIpPolicy(std::string_view quota) {
  return "policies:\n  - name: per-ip\n    match: { ip: \"*\" }\n    quota: " + std::string(quota) +
         "\n";
}

/// `100/60m` → the text of a sliding log.
Result<std::string> SlidingLogText(std::string_view text) {
  const auto slash = text.find('/');
  const auto digits = text.substr(0, slash);
  const bool number = !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos;
  if (slash == text.npos || !number || !policy::ParseDuration(text.substr(slash + 1))) {
    return Invalid("--per-ip " + std::string(text) + ": write it as 100/60m");
  }
  return PerIpPolicy("{ sliding_log: { limit: " + std::string(digits) +
                     ", window: " + std::string(text.substr(slash + 1)) + " } }");
}

/// The only domain of the policies, if there is only one.
Result<std::string> OnlyDomain(const std::vector<policy::Definition>& definitions) {
  std::set<std::string> domains;
  for (const policy::Definition& definition : definitions) domains.insert(definition.domain);
  if (domains.size() > 1) {
    return Invalid("the policies are of several domains; say which one with --domain");
  }
  return domains.empty() ? std::string(policy::kDefaultDomain) : *domains.begin();
}

http::Response Text(int status, std::string_view type, std::string body) {
  http::Response response;
  response.status = status;
  response.content_type = type;
  response.body = std::move(body);
  return response;
}

}  // namespace

ProxyService::ProxyService(const ProxySettings& settings) : settings_(settings) {}

ProxyService::~ProxyService() {
  if (!pool_) return;
  pool_->Stop();
  if (stores_) stores_->Close();
  if (door_) door_->Clear();
}

Result<std::unique_ptr<ProxyService>> ProxyService::Open(const ProxySettings& settings) {
  std::unique_ptr<ProxyService> service(new ProxyService(settings));
  service->pool_.emplace(
      net::PoolOptions{.reactors = settings.config.threads,
                       .max_connections = settings.config.limits.max_connections});
  if (const Status status = service->OpenLimiters(); !status) return status.error();
  if (const Status status = service->OpenProxy(); !status) return status.error();
  if (const Status status = service->OpenAdmin(); !status) return status.error();
  return service;
}

Result<std::vector<policy::Definition>> ProxyService::ReadPolicies() const {
  std::vector<policy::yaml::Problem> problems;
  std::vector<policy::Definition> all;
  if (!settings_.per_ip.empty()) {
    const auto text = SlidingLogText(settings_.per_ip);
    if (!text) return text.error();
    all = policy::ParsePolicies(*text, "--per-ip", problems);
  } else if (settings_.config.policies.empty()) {
    policy::Definition definition = settings_.config.default_policy;
    definition.name = "per-ip";
    definition.match = {policy::MakeEntryMatch("ip", "*")};
    definition.has_match = true;
    all.push_back(std::move(definition));
  }
  for (const std::string& file : settings_.config.policies) {
    std::vector<policy::Definition> some = policy::LoadPolicyFile(file, problems);
    all.insert(all.end(), std::make_move_iterator(some.begin()),
               std::make_move_iterator(some.end()));
  }
  if (!problems.empty()) return Invalid(policy::yaml::ToString(problems));
  return all;
}

Result<std::shared_ptr<const policy::PolicySet>> ProxyService::Compile(
    std::vector<policy::Definition> all) {
  return policy::PolicySet::Compile(
      std::move(all), {settings_.config.default_policy, settings_.config.local_share}, ids_);
}

Status ProxyService::OpenLimiters() {
  const config::Config& config = settings_.config;
  auto definitions = ReadPolicies();
  if (!definitions) return definitions.error();
  const auto only = OnlyDomain(*definitions);
  if (settings_.domain.empty() && !only) return only.error();
  domain_ = settings_.domain.empty() ? *only : settings_.domain;
  const auto set = Compile(std::move(*definitions));
  if (!set) return set.error();
  policies_.emplace(*set);

  std::error_code error;
  std::filesystem::create_directories(config.data, error);
  if (error) {
    return Error{Code::kUnavailable, "data " + config.data + ": " + error.message()};
  }
  auto stores = Stores::Open(config, config.data + "/proxy-limits.snapshot", *pool_);
  if (!stores) return stores.error();
  stores_ = std::move(*stores);
  shared_.emplace(
      *policies_, ids_,
      limiter::Fallback::Options{.max_keys = config.max_keys, .share = config.local_share});
  for (std::size_t i = 0; i < pool_->size(); ++i) {
    limiters_.push_back(std::make_unique<limiter::PolicyLimiter>(*shared_, stores_->Take(i)));
  }
  return {};
}

Status ProxyService::OpenProxy() {
  const config::Config& config = settings_.config;
  proxy::ProxyOptions options;
  for (const std::string& url : settings_.upstreams) {
    const auto endpoint = proxy::ResolveUpstream(url);
    if (!endpoint) return endpoint.error();
    options.upstreams.push_back(*endpoint);
  }
  options.trusted_proxies = config.trusted_proxies;
  options.grouping.v6_prefix = config.ipv6_prefix;
  options.domain = domain_;
  options.api_key_header = settings_.api_key_header;
  options.user_header = settings_.user_header;
  options.headers = {config.headers.x_ratelimit, config.headers.ietf};
  options.timeouts = settings_.timeouts;
  door_.emplace(std::move(options));
  for (std::size_t i = 0; i < pool_->size(); ++i) {
    door_->AddReactor(pool_->reactor(i), limiters_[i].get());
  }
  const auto endpoint = pool_->Listen(*door_, settings_.listen);
  if (!endpoint) return endpoint.error();
  lines_.push_back("listening proxy " + net::FormatEndpoint(*endpoint));
  return {};
}

Status ProxyService::OpenAdmin() {
  if (settings_.admin == "off") return {};
  registry_.Add(telemetry::CollectProcess);
  registry_.Add([this](telemetry::TextWriter& out) { proxy::CollectProxy(*door_, out); });
  registry_.Add([this](telemetry::TextWriter& out) { stores_->Collect(out); });
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
  const auto endpoint = pool_->Listen(*admin_door_, settings_.admin);
  if (!endpoint) return endpoint.error();
  lines_.push_back("listening admin " + net::FormatEndpoint(*endpoint));
  return {};
}

void ProxyService::Start() {
  pool_->Start();
  for (const std::string& line : lines_) std::cout << line << '\n';
  std::cout.flush();
}

Status ProxyService::Reload() {
  auto definitions = ReadPolicies();
  if (!definitions) return definitions.error();
  const auto set = Compile(std::move(*definitions));
  if (!set) return set.error();
  policies_->Publish(*set);
  return {};
}

void ProxyService::Stop() {
  stores_->Drain();
  if (!pool_->Drain(settings_.config.limits.drain_timeout)) {
    Log(Level::kWarn, "drain took too long; some connections were cut off");
  }
  pool_->Stop();
  stores_->Close();
  door_->Clear();
}

}  // namespace weir::app
