#pragma once

#include "base/duration.h"

namespace weir::policy {

using weir::FormatDuration;
using weir::ParseDuration;

}  // namespace weir::policy
