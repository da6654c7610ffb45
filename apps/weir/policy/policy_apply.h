#pragma once

// weir policy diff and apply: the policies of a file, and those of a service.

#include <string>

#include "remote/remote.h"

namespace weir::app {

/// What applying a file means. Thread safety: as any value.
struct ApplyWords {
  const Remote& remote;
  std::string file = {};
  std::string expires = {};  ///< --expires
};

/// Prints what applying the file would change, and what the service would not take. Returns the
/// exit code.
int DiffFile(const ApplyWords& words);
/// Applies it, if the service would take all of it; otherwise nothing is changed. `dry_run`: only
/// says what would happen. Returns the exit code.
int ApplyFile(const ApplyWords& words, bool dry_run);

}  // namespace weir::app
