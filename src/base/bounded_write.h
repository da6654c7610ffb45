#pragma once

#include <chrono>
#include <string_view>

#include "weir/result.h"

namespace weir {

/// Writes all of `bytes`, or says why not: whoever reads at the other end of a pipe or terminal may
/// have stopped, which must not stop the writer for good. What was written by then stays written.
Status WriteBy(int fd, std::string_view bytes, std::chrono::steady_clock::time_point deadline);

}  // namespace weir
