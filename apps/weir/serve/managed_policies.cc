#include "serve/managed_policies.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "drivers/xds/rate_limit_config.h"
#include "policy/envoy_config.h"
#include "telemetry/log.h"
#include "telemetry/version.h"

namespace weir::app {
namespace {

using telemetry::Level;
using telemetry::Log;

void LogChange(const std::string& problem) {
  if (problem.empty()) return Log(Level::kInfo, "connected to the control plane");
  Log(Level::kWarn, "cannot reach the control plane; keeping the current policies; will retry",
      {{"error", std::string_view(problem)}});
}

}  // namespace

Result<std::unique_ptr<ManagedPolicies>> ManagedPolicies::Open(const config::Config& config,
                                                               Apply apply) {
  if (config.xds.server.empty()) return std::unique_ptr<ManagedPolicies>();
  // Otherwise it would be taken for a control plane that is down, and tried for ever.
  for (const auto& [setting, file] : {std::pair("xds.tls_ca", &config.xds.tls_ca),
                                      {"xds.tls_cert", &config.xds.tls_cert},
                                      {"xds.tls_key", &config.xds.tls_key}}) {
    if (file->empty()) continue;
    const Result<std::ifstream> opened = OpenFile(*file);
    if (!opened.ok())
      return Invalid(std::string(setting) + ": " + *file + ": " + opened.error().message);
  }
  std::unique_ptr<ManagedPolicies> managed(new ManagedPolicies(config, std::move(apply)));
  managed->Restore();
  xds::SubscriptionOptions options;
  options.server = {config.xds.server, config.xds.headers, config.xds.tls_ca, config.xds.tls_cert,
                    config.xds.tls_key};
  options.node_id = config.xds.node_id;
  options.type_url = xds::kRateLimitConfigType;
  options.user_agent_version = telemetry::kVersion;
  options.on_state = [self = managed.get()](const xds::State& state) {
    return self->PutInForce(state);
  };
  options.on_change = LogChange;
  managed->subscription_.emplace(std::move(options));
  return managed;
}

ManagedPolicies::ManagedPolicies(const config::Config& config, Apply apply)
    : path_(config.data + "/xds.state"), lenient_(config.lenient), apply_(std::move(apply)) {}

Status ManagedPolicies::PutInForce(const xds::State& state) {
  // Another stream begins with what is already in force; its version may have another name.
  std::string bytes = xds::Serialize({"", state.resources});
  if (known() && bytes == in_force_) return {};
  std::vector<policy::Definition> policies;
  std::vector<policy::yaml::Problem> problems;
  for (const std::string& resource : state.resources) {
    const Result<xds::RateLimitConfig> config = xds::ReadRateLimitConfig(resource, lenient_);
    if (!config.ok()) {
      problems.push_back({"xds", {}, config.error().message});
      continue;
    }
    std::vector<policy::Definition> some =
        policy::ParseEnvoyConfig(config->yaml, "xds:" + config->name, problems, lenient_);
    policies.insert(policies.end(), std::make_move_iterator(some.begin()),
                    std::make_move_iterator(some.end()));
  }
  problems = apply_(std::move(policies), std::move(problems));
  if (!problems.empty()) {
    return Error{Code::kInvalidArgument, policy::yaml::ToString(problems)};
  }
  in_force_ = std::move(bytes);
  known_.store(true, std::memory_order_release);
  Keep(in_force_);
  return {};
}

void ManagedPolicies::Restore() {
  std::ifstream file(path_, std::ios::binary);
  if (!file.is_open()) return;
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const Result<xds::State> state = xds::ParseState(bytes);
  const Status status = state.ok() ? PutInForce(*state) : Status(state.error());
  if (status.ok()) return;
  Log(Level::kWarn, "cannot use the saved policies of the control plane; waiting for new ones",
      {{"file", std::string_view(path_)}, {"error", std::string_view(status.error().message)}});
}

void ManagedPolicies::Keep(const std::string& bytes) const {
  const std::string temporary = path_ + ".new";
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  if (file && std::rename(temporary.c_str(), path_.c_str()) == 0) return;
  Log(Level::kWarn, "cannot save the control plane's policies for a restart without it",
      {{"file", std::string_view(path_)}});
}

void ManagedPolicies::Collect(telemetry::TextWriter& out) const {
  out.Gauge("weir_xds_connected", "1 while connected to the xDS control plane.");
  out.Sample(std::uint64_t{subscription_->connected() ? 1U : 0U});
  out.Counter("weir_xds_updates_total", "Updates from the control plane, by result.");
  const telemetry::Label accepted{"result", "accepted"};
  const telemetry::Label refused{"result", "refused"};
  out.Sample(subscription_->accepted(), {&accepted, 1});
  out.Sample(subscription_->refused(), {&refused, 1});
}

}  // namespace weir::app
