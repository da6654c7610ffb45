#pragma once

#include <functional>

#include "store/sql/combiner.h"
#include "store/sql/known_keys.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::store::sql {

/// What the lanes of a pool share.
struct LaneParts {
  Combiner& combiner;
  KnownKeys& known;
  const Clock* clock;              ///< null: the server's
  std::function<Status()> create;  ///< makes the missing table, blocking; null: not allowed
};

}  // namespace weir::store::sql
