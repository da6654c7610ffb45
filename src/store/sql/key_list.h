#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "store/key_list.h"
#include "weir/result.h"

namespace weir::store::sql {

/// The part of a row that a list needs.
struct RowHead {
  std::string id;
  std::string state;   ///< only the beginning of a large one: see kWholeState
  bool stale = false;  ///< expired, and not yet swept
};

/// A state up to this size is read whole; of a larger one, kStateBegin bytes are read. So a page is
/// small however long the logs are.
inline constexpr std::size_t kWholeState = 8192;
inline constexpr std::size_t kStateBegin = 64;

/// Reads up to `limit` rows whose ids come after `after`, in the order of their ids.
using ReadRows =
    std::function<Result<std::vector<RowHead>>(const std::string& after, std::size_t limit)>;

/// One page, from a bounded number of rows. kInvalidArgument if the cursor is invalid.
Result<KeyPage> ReadKeys(const KeyQuery& query, const ReadRows& read_rows);

}  // namespace weir::store::sql
