#pragma once

// Settings that name keys and who may do what. No message repeats a key.

#include <vector>

#include "config/config.h"
#include "config/values.h"
#include "weir/result.h"

namespace weir::config {

/// Whether one of them is shorter than a key should be.
bool AnyShort(Texts texts);

/// Keys as they are, as sha256:<hex>, or as @file, whose first line is the key.
Status SetKeys(std::vector<Digest>& keys, Texts texts);

/// Each name:role+role:key, the key as above and of at least 16 characters.
Status SetAccessKeys(std::vector<Config::Access::Key>& keys, Texts texts);

/// Each role+role:text; the text may hold colons.
Status SetRolesOf(std::vector<Config::Access::Subject>& items, Texts texts);
Status SetRolesOf(std::vector<Config::Oidc::Mapping>& items, Texts texts);

/// Operations of access.open, or none.
Status SetOpen(std::vector<access::Operation>& open, Texts texts);

}  // namespace weir::config
