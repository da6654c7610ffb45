#pragma once

// Reads a configuration of Envoy itself and reports where its rate limit filters (ratelimit and
// rate_limit_quota) would not do what their author expects, with Envoy 1.40 and Weir behind it.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "policy/yaml.h"

namespace weir::policy {

struct EnvoyFilters {
  std::size_t rls = 0;   ///< ratelimit filters
  std::size_t rlqs = 0;  ///< rate_limit_quota filters
  /// Questionable settings, each with its position.
  std::vector<yaml::Problem> warnings;
};

/// `text` is YAML or JSON. Text that cannot be parsed is reported in `problems`.
EnvoyFilters CheckEnvoyFilters(std::string_view text, const std::string& file,
                               std::vector<yaml::Problem>& problems);

}  // namespace weir::policy
