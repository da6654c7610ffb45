#pragma once

#include <string>

#include "policy/yaml.h"

namespace weir::policy::yaml {

/// A tree of YAML as JSON, on one line. A scalar that is not in quotes and looks like a number, a
/// boolean or null is one; everything else is a string.
std::string ToJson(const Node& node);

}  // namespace weir::policy::yaml
