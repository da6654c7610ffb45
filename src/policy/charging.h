#pragma once

#include <optional>
#include <string>
#include <vector>

#include "algorithm/lease.h"
#include "policy/definition.h"

namespace weir::policy {

/// What the charges of a leased policy are charged under, or why it cannot be leased: "mode: …".
/// Needs a quota and a mode that is not kExact.
Result<algorithm::LeaseTerms> LeaseTermsOf(const Definition& definition);

/// Whether a policy can charge as it says, with its quota: what cannot be leased, or overdrawn.
Status CheckCharging(const Definition& definition);

/// Whether the store that it names, if any, is one of `stores`; nothing: all are.
Status CheckStore(const Definition& definition,
                  const std::optional<std::vector<std::string>>& stores);

}  // namespace weir::policy
