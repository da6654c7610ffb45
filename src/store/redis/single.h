#pragma once

#include <optional>

#include "drivers/redis/command.h"
#include "store/redis/call.h"
#include "store/redis/names.h"
#include "store/redis/script.h"
#include "store/store.h"
#include "weir/clock.h"

namespace weir::store::redis {

/// The script for an application that is a single charge whose numbers are exact in a double;
/// nullopt for all others.
std::optional<Shape> SingleShape(const Application& application);

/// A call of SingleScript.
struct SingleCall {
  weir::redis::Command arguments;
  Nanos reference = 0;  ///< what times in the answer count from
};

/// As Encode. `shape` is the application's.
SingleCall EncodeSingle(const Names& names, const Application& application, Shape shape,
                        Nanos reference, std::optional<Nanos> now = std::nullopt);

}  // namespace weir::store::redis
