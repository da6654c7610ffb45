#pragma once

// From the configuration and the policies in force to the routes of keys: store/route/routes.h.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "policy/policy_set.h"
#include "store/route/routes.h"

namespace weir::library {

/// One server and what it is called: its store's name, and the shard's number if it has several.
struct StoreMember {
  std::string name;  ///< empty: the only one there is
  std::string url;
};

/// Every server of the configuration once, also if several stores have it.
std::vector<StoreMember> MembersOf(const config::Config& config);

/// True if all limits are in this process, which then has nothing to lease from anybody.
bool OnlyMemory(const config::Config& config);

/// True if another Weir may use the limits of a service as its store (WEIR.APPLY): if the RESP port
/// is open and somebody may have the role for it.
bool MayBeAStore(const config::Config& config);

/// True if others may lease what a service charges: it then has to charge under the terms that they
/// lease by (docs/design/leases.md, A3).
inline bool SharesLimits(const config::Config& config) {
  return !OnlyMemory(config) || MayBeAStore(config);
}

/// The names that policies may give in `store`.
std::vector<std::string> StoreNames(const config::Config& config);

/// Where the limits are, for people, without passwords.
std::string StoresText(const config::Config& config);

/// How long a key that moves is not levelled again: longer than what a check may take that asks
/// both of its stores, each with this timeout, and then levels it.
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
