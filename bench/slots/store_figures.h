#pragma once

#include <cstdint>
#include <string>

#include "slots/slot_store.h"

namespace weir::bench {

/// Creates the config `name`: windows of `window` milliseconds, `max` events each.
void PutConfig(slots::SlotStore& store, const std::string& name, std::int64_t max = 100,
               slots::Millis window = 4'000);

/// Assigns `count` events of config `name` that all request one time, in batches of `batch` with
/// `calls` under way at a time. Returns the seconds it took. Event ids start with `prefix`.
double AssignInBatches(slots::SlotStore& store, const std::string& name, const std::string& prefix,
                       std::int64_t count, std::size_t batch, int calls = 2);

/// Claims due events of config `name` in sets of `batch` and reports each as done, on `callers`
/// threads, until `count` are. Returns the seconds it took.
double ClaimAndFinish(slots::SlotStore& store, const std::string& name, std::int64_t count,
                      std::size_t batch, int callers = 4);

/// Waits until no event of config `name` is due or claimed. Returns the seconds it took.
double SecondsUntilDone(slots::SlotStore& store, const std::string& name);

}  // namespace weir::bench
