#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace weir::policy::redis {

/// The changes that a node knows: those of an epoch up to a number. A Redis that has lost its
/// policies starts another epoch with the next change, so that its count is not mistaken for the
/// previous one. An empty epoch: a state written by weir 0.2.
struct Mark {
  std::string epoch = {};
  std::int64_t changes = 0;

  /// "50 3f2a…"
  std::string ToString() const;
  /// A mark of no changes if the text is invalid.
  static Mark Parse(std::string_view text);
};

/// The changes of earlier epochs that a state contains: up to which number, by epoch.
using Past = std::map<std::string, std::int64_t>;

/// A new epoch, unlike any other.
std::string NewEpoch();

}  // namespace weir::policy::redis
