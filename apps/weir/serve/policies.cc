#include "serve/policies.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "admin/sqlite/policy_memory.h"
#include "admin/sqlite/sqlite_policy_store.h"
#include "base/url.h"
#include "library/backends.h"
#include "plaintext.h"
#include "telemetry/log.h"

namespace weir::app {
namespace {

using telemetry::Level;
using telemetry::Log;

void LogReport(std::string_view what, const std::string& problem) {
  if (problem.empty()) return Log(Level::kInfo, what);
  Log(Level::kError, what, {{"error", std::string_view(problem)}});
}

policy::shared::Options PolicyOptionsOf(const config::Config& config, const std::string& url) {
  policy::shared::Options options;
  options.migrate = config.distant.migrate;
  options.required = config.distant.required;
  // As the store's own, but no shorter than a commit on a slow disk may take.
  options.patience = std::max(2 * config.distant.timeout, std::chrono::milliseconds(1000));
  options.report = LogReport;
  auto memory =
      policy::sqlite::PolicyMemory::Open(config.data + "/policies.db", WithoutSecrets(url));
  if (memory.ok()) {
    options.memory = std::move(*memory);
  } else {
    LogReport("cannot save policies for a restart without the policy database",
              memory.error().message);
  }
  return options;
}

}  // namespace

std::string PolicyStoreUrl(const config::Config& config) {
  if (config.policy_store != "auto") return config.policy_store;
  const library::BackendKind* const kind = library::FindBackend(config.store);
  return kind != nullptr && kind->open_policies != nullptr ? config.store : "sqlite:";
}

Result<std::unique_ptr<policy::PolicyStore>> OpenPolicyStore(const config::Config& config,
                                                             sqlite::Database& database,
                                                             policy::Catalog& catalog) {
  const std::string url = PolicyStoreUrl(config);
  if (url == "sqlite:") {
    auto store = policy::sqlite::SqlitePolicyStore::Open(database, catalog);
    if (!store.ok()) return store.error();
    return std::unique_ptr<policy::PolicyStore>(std::move(*store));
  }
  if (const std::size_t left = policy::sqlite::CountPolicies(database); left != 0) {
    Log(Level::kWarn,
        "ignoring the policies in this node's data folder: policy_store is a database",
        {{"policies", static_cast<std::int64_t>(left)}});
  }
  // If it is the store's URL, the warning is about the store.
  if (config.policy_store != "auto") WarnOfPlaintext("policy_store", url);
  const library::BackendKind* const kind = library::FindBackend(url);
  if (kind == nullptr || kind->open_policies == nullptr)
    return Error{Code::kInvalidArgument, "policy_store: unsupported URL scheme"};
  auto store = kind->open_policies(url, catalog, PolicyOptionsOf(config, url));
  if (store.ok()) return store;
  const Error& error = store.error();
  const bool refused = error.code == Code::kUnauthenticated;
  return Error{error.code, "policy_store: " + WithoutSecrets(url) + ": " +
                               (refused ? "authentication failed: " : "") + error.message};
}

}  // namespace weir::app
