#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "policy/yaml.h"

namespace weir::config {

/// As Load, from a tree that has been read already; `root` is null if there is no file.
Config Read(const policy::yaml::Node* root, const std::string& file,
            std::span<const Override> overrides, std::vector<policy::yaml::Problem>& problems);

}  // namespace weir::config
