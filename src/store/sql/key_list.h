#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "store/key_list.h"
#include "weir/result.h"

namespace weir::store::sql {

/// A row as far as a list needs it.
struct RowHead {
  std::string id;
  std::string state;   ///< of a large one the beginning: see kWholeState
  bool stale = false;  ///< expired, and not yet swept
};

/// A state up to this size is read as a whole, of a larger one kStateBegin bytes. So a page is
/// small however long the logs are.
inline constexpr std::size_t kWholeState = 8192;
inline constexpr std::size_t kStateBegin = 64;

/// Reads up to `limit` rows whose ids come after `after`, in their order.
using ReadRows =
    std::function<Result<std::vector<RowHead>>(const std::string& after, std::size_t limit)>;

/// One page, from a bounded number of rows. kInvalidArgument if the cursor is none.
Result<KeyPage> ReadKeys(const KeyQuery& query, const ReadRows& read_rows);

}  // namespace weir::store::sql
