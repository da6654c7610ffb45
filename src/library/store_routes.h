#pragma once

// Makes the routes of keys (store/route/routes.h) from the configuration and the policies in force.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "policy/policy_set.h"
#include "store/route/routes.h"

namespace weir::library {

/// One server and its name: that of its store, with the shard's number if there are several.
struct StoreMember {
  std::string name;  ///< empty: there is only one
  std::string url;
};

/// Every server of the configuration once, even if several stores use it.
std::vector<StoreMember> MembersOf(const config::Config& config);

/// True if all limits are in this process, so there is nothing to lease.
bool OnlyMemory(const config::Config& config);

/// True if another Weir may use a service's limits as its store (WEIR.APPLY): if the RESP port is
/// open and someone may have the role for it.
bool MayBeAStore(const config::Config& config);

/// True if other nodes may lease what a service charges: it must then charge under the terms that
/// they lease by (docs/design/leases.md, A3).
inline bool SharesLimits(const config::Config& config) {
  return !OnlyMemory(config) || MayBeAStore(config);
}

/// The names that policies may use in `store`.
std::vector<std::string> StoreNames(const config::Config& config);

/// Where the limits are, for people, without passwords.
std::string StoresText(const config::Config& config);

/// What is wrong with the URLs of databases, each with its setting: "store: redis URL: …". Without
/// it a service would notice when it opens them, and call it by the part that does.
std::vector<std::string> WrongUrls(const config::Config& config);

/// How long a key that moves is not levelled again: longer than a check may take that calls both of
/// its stores, each with this timeout, and then levels it.
std::chrono::milliseconds LevelPause(std::chrono::milliseconds timeout);

store::route::Routes RoutesOf(const config::Config& config, const policy::PolicySet& policies);

/// The routes of the policies in force.
///
/// Not thread-safe: each reactor has its own.
class LiveRoutes {
 public:
  /// Both must outlive it.
  LiveRoutes(const config::Config& config, const policy::LivePolicies& policies)
      : config_(config), policies_(policies) {}

  const store::route::Routes& Current();

 private:
  const config::Config& config_;
  const policy::LivePolicies& policies_;
  std::uint64_t version_ = 0;
  std::optional<store::route::Routes> routes_;
};

}  // namespace weir::library
