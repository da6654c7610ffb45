#pragma once

#include <chrono>
#include <string_view>

#include "weir/result.h"

namespace weir {

/// Writes all of `bytes`, or returns why not: the reader of a pipe or terminal may have stopped,
/// which must not block the writer forever. Bytes written before the deadline stay written.
Status WriteBy(int fd, std::string_view bytes, std::chrono::steady_clock::time_point deadline);

}  // namespace weir
