#pragma once

// Settings for keys and roles. No message repeats a key.

#include <vector>

#include "config/config.h"
#include "config/values.h"
#include "weir/result.h"

namespace weir::config {

/// Whether a key is shorter than it should be.
bool AnyShort(Texts texts);

/// Each a key, sha256:<hex>, or @file, whose first line is the key.
Status SetKeys(std::vector<Digest>& keys, Texts texts);

/// Each name:role+role:key, the key as above and of at least 16 characters.
Status SetAccessKeys(std::vector<Config::Access::Key>& keys, Texts texts);

/// Each role+role:text; the text may contain colons.
Status SetRolesOf(std::vector<Config::Access::Subject>& items, Texts texts);
Status SetRolesOf(std::vector<Config::Oidc::Mapping>& items, Texts texts);

/// Operations of access.open, or none.
Status SetOpen(std::vector<access::Operation>& open, Texts texts);

}  // namespace weir::config
