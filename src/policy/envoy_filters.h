#pragma once

// Reads a configuration of Envoy itself and says where its rate limit filters (ratelimit and
// rate_limit_quota) would not do what their author expects, with Envoy 1.40 and Weir behind it.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "policy/yaml.h"

namespace weir::policy {

struct EnvoyFilters {
  std::size_t rls = 0;   ///< filters of the kind ratelimit
  std::size_t rlqs = 0;  ///< filters of the kind rate_limit_quota
  /// What is questionable, each with its place.
  std::vector<yaml::Problem> warnings;
};

/// `text` is YAML or JSON. What cannot be read at all goes to `problems`.
EnvoyFilters CheckEnvoyFilters(std::string_view text, const std::string& file,
                               std::vector<yaml::Problem>& problems);

}  // namespace weir::policy
