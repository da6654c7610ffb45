#pragma once

#include <cstdint>

#include "drivers/redis/script.h"

namespace weir::store::redis {

/// Decides calls of any content: script/*.lua.
const weir::redis::Script& ApplyScript();

/// Single charges that have their own script. A window is fixed or starts with its first charge.
enum class Shape : std::uint8_t { kTokenBucket, kWindow, kSlidingCounter };

/// Decides a call that is a single charge, at a fraction of the cost: script/single/*.lua.
const weir::redis::Script& SingleScript(Shape shape);

}  // namespace weir::store::redis
