#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/clock.h"
#include "weir/quota.h"

namespace weir::simulation {

/// Something that was let pass, in the store's time, or given back.
struct Admission {
  Nanos time = 0;
  std::int64_t cost = 0;  ///< less than 0: given back
};

/// Replays admissions through the step of a quota: which of them it would have refused, in words.
std::optional<std::string> FirstRefused(const Quota& quota,
                                        const std::vector<Admission>& admissions);

}  // namespace weir::simulation
