#pragma once

#include "store/store.h"

namespace weir::store {

/// Whether an operation on several stores, or on parts of one, has failed if only some of them did
/// it. A refund has not: a caller that sees an error repeats it, which would return the same
/// permits twice. What could not be refunded stays charged.
constexpr bool FailsInPart(Op op) noexcept { return op != Op::kRefund; }

}  // namespace weir::store
