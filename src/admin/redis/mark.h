#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace weir::policy::redis {

/// The changes that a node knows: those of an epoch up to a number. A Redis that has lost its
/// policies begins another epoch with the next change, so that its count is not taken for the one
/// that went before. Empty: of a state that weir 0.2 wrote.
struct Mark {
  std::string epoch = {};
  std::int64_t changes = 0;

  /// "50 3f2a…"
  std::string ToString() const;
  /// Of no changes if the text is not one.
  static Mark Parse(std::string_view text);
};

/// Changes of earlier epochs that a state has: up to which number, by epoch.
using Past = std::map<std::string, std::int64_t>;

/// One that no other state has.
std::string NewEpoch();

}  // namespace weir::policy::redis
