#include "policy/charging.h"

#include "algorithm/lease.h"

namespace weir::policy {

Status CheckCharging(const Definition& definition) {
  if (!definition.quota) return {};
  if (definition.overdraw && definition.quota->algorithm() == Algorithm::kConcurrency) {
    return Error{Code::kInvalidArgument, "overdraw: a concurrency quota cannot be overdrawn"};
  }
  if (definition.mode != Mode::kLeased) return {};
  if (definition.always_counts()) {
    return Error{Code::kInvalidArgument,
                 "mode: leased: permits that are overdrawn cannot be leased"};
  }
  const auto terms = algorithm::TermsFor(*definition.quota);
  return terms.ok() ? Status()
                    : Error{Code::kInvalidArgument, "mode: leased: " + terms.error().message};
}

}  // namespace weir::policy
