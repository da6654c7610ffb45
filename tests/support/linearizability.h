#pragma once

// Could one store that decides one check after the other have given these answers? Each check took
// effect at some moment between its sending and its answer; the checkers look for such moments.
// Times are nanoseconds since the epoch, of one clock that is also the store's.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::test {

/// One check of one key that cost 1.
struct CheckRecord {
  std::int64_t sent = 0;
  std::int64_t answered = 0;
  bool allowed = false;
};

/// Why no order explains the history under a fixed window, or nothing if one does. Windows begin at
/// multiples of `window`. Exact except for checks that take longer than one, which are left out.
std::optional<std::string> ExplainFixedWindow(std::vector<CheckRecord> history, std::int64_t limit,
                                              std::int64_t window);

/// The same for a token bucket that is full at first. A reported violation is certain; a history
/// in which checks overlap may pass although no order explains it.
std::optional<std::string> ExplainTokenBucket(std::vector<CheckRecord> history,
                                              std::int64_t capacity, std::int64_t nanos_per_permit);

}  // namespace weir::test
