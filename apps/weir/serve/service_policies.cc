// Where the policies of `weir serve` come from: files, a control plane, the admin API's store.

#include <functional>
#include <string>
#include <utility>

#include "admin/file_changes.h"
#include "admin/sqlite/implied_domain.h"
#include "library/store_routes.h"
#include "policy/envoy_config.h"
#include "policy/policy_file.h"
#include "serve/policies.h"
#include "serve/service.h"
#include "telemetry/log.h"

namespace weir::app {
namespace {

using telemetry::Level;
using telemetry::Log;

/// A change may move requests without a domain to another one, and away from their limits; so may
/// one that was made while the service was down, which is why `limited`, the domain that they
/// belonged to when it last ran, is kept in the database.
std::function<void(const policy::PolicySet&)> WarnOfAnotherDomain(sqlite::Database& database,
                                                                  std::string limited) {
  return [&database, limited = std::move(limited),
          starting = true](const policy::PolicySet& next) mutable {
    const std::string& now = next.implied_domain();
    // At startup, policies of other sources may still be on their way.
    if (std::exchange(starting, false) && !next.HasDomain(now)) return;
    if (!limited.empty() && limited != now) {
      Log(Level::kWarn, "requests that name no domain belong to another one now",
          {{"before", std::string_view(limited)}, {"now", std::string_view(now)}});
    }
    const std::string after = next.HasDomain(now) ? now : "";
    if (std::exchange(limited, after) != after) policy::sqlite::WriteImpliedDomain(database, after);
  };
}

}  // namespace

Status Service::OpenPolicies() {
  catalog_.emplace(policy::CompileOptions{config_.default_policy,
                                          config_.local_share,
                                          config_.lenient,
                                          library::StoreNames(config_),
                                          library::SharesLimits(config_),
                                          {config_.region.term, config_.region.lends}});
  // Before they are read: opening the policies' database may take a while.
  auto read = policy::FileWatcher::Look(config_.policies);
  const auto problems = catalog_->LoadFiles(config_.policies);
  if (!problems.empty()) {
    return Error{Code::kInvalidArgument, policy::yaml::ToString(problems)};
  }
  auto domain = policy::sqlite::ReadImpliedDomain(*database_);
  if (!domain) return domain.error();
  auto store = OpenPolicyStore(config_, *database_, *catalog_);
  if (!store) return store.error();
  policy_store_ = std::move(*store);
  if (Status status = OpenManagedPolicies(); !status.ok()) return status;
  WarnOfMisfits(config_, *catalog_->live().Current());
  catalog_->BeforePublishing(WarnOfAnotherDomain(*database_, std::move(*domain)));
  if (config_.policies.empty()) return {};
  NoteEnvoyCharge();
  policy::FileWatcher::Options options;
  options.paths = config_.policies;
  options.read = std::move(read);
  options.on_change = [this] { ReloadPolicies(); };
  auto watcher = policy::FileWatcher::Start(std::move(options));
  if (!watcher) return watcher.error();
  watcher_ = std::move(*watcher);
  return {};
}

Status Service::OpenManagedPolicies() {
  auto managed = ManagedPolicies::Open(config_, [this](
                                                    std::vector<policy::Definition> policies,
                                                    std::vector<policy::yaml::Problem> problems) {
    return Reloaded([&] { return catalog_->SetManaged(std::move(policies), std::move(problems)); });
  });
  if (!managed) return managed.error();
  managed_ = std::move(*managed);
  return {};
}

void Service::ReloadPolicies() {
  const auto problems = Reloaded([this] { return catalog_->LoadFiles(config_.policies); });
  if (problems.empty()) NoteEnvoyCharge();
}

/// Logs once for each file of envoyproxy/ratelimit that leaves `charge` unset: it is not charged as
/// it would be there.
void Service::NoteEnvoyCharge() {
  std::vector<policy::yaml::Problem> ignored;  // they have just been reported
  const std::vector<std::string> files = policy::PolicyFiles(config_.policies, ignored);
  for (std::string& file : policy::FilesWithoutCharge(files)) {
    const std::lock_guard lock(reload_mutex_);
    const auto [noted, is_new] = noted_files_.insert(std::move(file));
    if (is_new) Log(Level::kInfo, policy::kEnvoyChargeNote, {{"file", std::string_view(*noted)}});
  }
}

/// Changes go into the audit log, like changes through the admin API.
std::vector<policy::yaml::Problem> Service::Reloaded(
    const std::function<std::vector<policy::yaml::Problem>()>& load) {
  const std::lock_guard lock(reload_mutex_);
  const auto before = catalog_->live().Current();
  std::vector<policy::yaml::Problem> problems = load();
  LogReload(problems);
  if (!problems.empty()) return problems;
  for (policy::AuditEntry& entry : admin::FileChanges(*before, *catalog_->live().Current())) {
    policy_store_->Append(std::move(entry), [](const Result<std::int64_t>& written) {
      if (written.ok()) return;
      Log(Level::kError, "cannot write a policy file change to the audit log",
          {{"error", std::string_view(written.error().message)}});
    });
  }
  return problems;
}

void Service::LogReload(const std::vector<policy::yaml::Problem>& problems) const {
  if (problems.empty()) {
    const std::size_t count = catalog_->live().Current()->policies().size();
    Log(Level::kInfo, "policies reloaded", {{"policies", static_cast<std::int64_t>(count)}});
    return WarnOfMisfits(config_, *catalog_->live().Current());
  }
  for (const policy::yaml::Problem& problem : problems) {
    const std::string text = problem.ToString();
    Log(Level::kError, "policies not reloaded; the current ones stay in force",
        {{"problem", std::string_view(text)}});
  }
}
}  // namespace weir::app
