#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/definition.h"

namespace weir::policy {

/// Whether a policy can charge as it says, with its quota: what cannot be leased, or overdrawn.
Status CheckCharging(const Definition& definition);

/// Whether the store that it names, if any, is one of `stores`; nothing: all are.
Status CheckStore(const Definition& definition,
                  const std::optional<std::vector<std::string>>& stores);

}  // namespace weir::policy
