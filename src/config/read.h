#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "policy/yaml.h"

namespace weir::config {

/// Like Load, but from a parsed tree; `root` is null if there is no file.
Config Read(const policy::yaml::Node* root, const std::string& file,
            std::span<const Override> overrides, std::vector<policy::yaml::Problem>& problems);

}  // namespace weir::config
