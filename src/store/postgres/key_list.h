#pragma once

#include <chrono>
#include <string>

#include "store/key_list.h"
#include "weir/result.h"

namespace weir::store::postgres {

/// A page of the keys in the database of `url`, over its own connection. Blocks: each of its few
/// statements for at most `patience`.
Result<KeyPage> ReadKeys(const std::string& url, std::chrono::milliseconds patience,
                         const KeyQuery& query);

}  // namespace weir::store::postgres
