#pragma once

#include <string>

#include "policy/yaml.h"

namespace weir::policy::yaml {

/// A YAML tree as JSON, on one line. A scalar that is not in quotes and looks like a number, a
/// boolean or null becomes one; everything else becomes a string.
std::string ToJson(const Node& node);

}  // namespace weir::policy::yaml
