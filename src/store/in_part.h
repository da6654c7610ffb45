#pragma once

#include "store/store.h"

namespace weir::store {

/// Whether what several stores, or parts of one, were asked to do has failed if only some of them
/// did it. A refund has not: whoever is told that it failed repeats it, and what was given back
/// would be given back again. What was not stays charged.
constexpr bool FailsInPart(Op op) noexcept { return op != Op::kRefund; }

}  // namespace weir::store
