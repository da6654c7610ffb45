#pragma once

#include "store/key_list.h"
#include "store/redis/redis_store.h"
#include "weir/result.h"

namespace weir::store::redis {

/// A page of the keys in a server, or in the masters of a cluster one after the other, as SCAN
/// finds them: keys that exist throughout are found, some perhaps twice. Uses its own connections.
/// Blocks: a few commands of at most options.command_timeout each.
Result<KeyPage> ReadKeys(const Options& options, const KeyQuery& query);

}  // namespace weir::store::redis
