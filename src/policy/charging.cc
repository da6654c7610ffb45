#include "policy/charging.h"

#include <algorithm>

#include "algorithm/lease.h"

namespace weir::policy {

namespace {

Result<algorithm::LeaseTerms> TermsOf(const Definition& definition, const RegionOptions& region) {
  if (definition.mode == Mode::kRateLeased) return algorithm::RateTermsFor(*definition.quota);
  if (region.term.count() == 0) return algorithm::TermsFor(*definition.quota);
  auto terms = algorithm::RegionTermsFor(*definition.quota, region.term);
  if (terms.ok() && region.lends) return algorithm::AtRegion(*terms);
  return terms;
}

}  // namespace

Result<algorithm::LeaseTerms> LeaseTermsOf(const Definition& definition,
                                           const RegionOptions& region) {
  auto terms = TermsOf(definition, region);
  if (terms.ok()) return terms;
  return Error{Code::kInvalidArgument,
               "mode: " + std::string(ModeName(definition.mode)) + ": " + terms.error().message};
}

Status CheckCharging(const Definition& definition) {
  if (!definition.quota) return {};
  if (definition.overdraw && definition.quota->algorithm() == Algorithm::kConcurrency) {
    return Error{Code::kInvalidArgument, "overdraw: a concurrency quota cannot be overdrawn"};
  }
  if (definition.mode == Mode::kExact) return {};
  if (definition.always_counts()) {
    return Error{Code::kInvalidArgument, "mode: " + std::string(ModeName(definition.mode)) +
                                             ": permits that are overdrawn cannot be leased"};
  }
  const auto terms = LeaseTermsOf(definition);
  return terms.ok() ? Status() : terms.error();
}

Status CheckStore(const Definition& definition,
                  const std::optional<std::vector<std::string>>& stores) {
  if (definition.store.empty() || !stores) return {};
  if (std::find(stores->begin(), stores->end(), definition.store) != stores->end()) return {};
  std::string names;
  for (const std::string& name : *stores) names += (names.empty() ? "" : ", ") + name;
  return Error{Code::kInvalidArgument,
               definition.source + ": policy '" + definition.name + "': unknown store '" +
                   definition.store + "'; " +
                   (names.empty() ? "the configuration has no stores" : "the stores are " + names)};
}

}  // namespace weir::policy
