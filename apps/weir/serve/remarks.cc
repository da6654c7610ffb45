// Policies that do not suit the store they are kept in.

#include <utility>

#include "drivers/redis/url.h"
#include "policy/cluster_tags.h"
#include "policy/long_leases.h"
#include "policy/spread.h"
#include "policy/unreachable.h"
#include "serve/stores.h"
#include "telemetry/log.h"

namespace weir::app {

std::vector<std::string> Misfits(const config::Config& config, const policy::PolicySet& policies) {
  std::vector<std::string> misfits = policy::Unreachable(policies);
  for (const library::StoreMember& member : library::MembersOf(config)) {
    if (!member.url.starts_with("redis")) continue;
    const auto address = redis::ParseUrl(member.url);
    if (!address.ok() || !address->cluster || address->tag.empty()) continue;
    for (std::string& conflict : policy::TagConflicts(policies, address->tag)) {
      misfits.push_back(std::move(conflict));
    }
  }
  return misfits;
}

void WarnOfMisfits(const config::Config& config, const policy::PolicySet& policies) {
  for (const std::string& misfit : Misfits(config, policies)) {
    telemetry::Log(telemetry::Level::kWarn, "questionable policy",
                   {{"why", std::string_view(misfit)}});
  }
}

std::vector<std::string> Remarks(const config::Config& config, const policy::PolicySet& policies) {
  std::vector<std::string> remarks = policy::LongLeases(policies);
  for (const library::StoreMember& member : library::MembersOf(config)) {
    if (!member.url.starts_with("redis")) continue;
    const auto address = redis::ParseUrl(member.url);
    if (!address.ok() || !address->cluster || !address->tag.empty() || !address->spread) continue;
    for (std::string& crossing : policy::CrossingPolicies(policies, member.name)) {
      remarks.push_back(std::move(crossing));
    }
  }
  return remarks;
}

}  // namespace weir::app
