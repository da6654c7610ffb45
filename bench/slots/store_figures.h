#pragma once

#include <cstdint>
#include <string>

#include "slots/slot_store.h"

namespace weir::bench {

/// Makes the config `name`: windows of four seconds, 100 events each.
void PutConfig(slots::SlotStore& store, const std::string& name);

/// Assigns `count` events of config `name` that all ask for one time, in batches of `batch` with
/// `calls` under way at once. Answers the seconds it took. Event ids start with `prefix`.
double AssignInBatches(slots::SlotStore& store, const std::string& name, const std::string& prefix,
                       std::int64_t count, std::size_t batch, int calls = 2);

}  // namespace weir::bench
