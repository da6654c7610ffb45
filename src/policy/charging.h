#pragma once

#include "policy/definition.h"

namespace weir::policy {

/// Whether a policy can charge as it says, with its quota: what cannot be leased, or overdrawn.
Status CheckCharging(const Definition& definition);

}  // namespace weir::policy
