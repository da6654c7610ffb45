#pragma once

// Claims and their ends as JSON. Uses no sockets and no store, so it can be fuzzed.

#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "slots/execution.h"
#include "weir/result.h"

namespace weir::slots {

/// Parses {"config","max","leaseMs"[,"aheadMs"][,"by"]} and checks its bounds.
Result<ClaimRequest> ParseClaim(std::string_view body);
/// {"events":[{"eventId","attempt"[,"error"][,"retryTime"][,"endedAgoMs"]}]}, 1 to kMaxBatch.
Result<std::vector<Finish>> ParseFinishes(std::string_view body, bool failed);
/// The same fields for one event, whose ID is in the path.
Result<Finish> ParseFinish(std::string_view body, std::string event_id, bool failed);

void AppendEvent(JsonWriter& json, const Event& event);
std::string ClaimBody(const Claim& claim);
/// DONE or FAILED, ALREADY, LOST, UNKNOWN.
std::string_view FinishedName(Finished finished, bool failed) noexcept;
void AppendBacklog(JsonWriter& json, const Backlog& backlog, std::optional<Millis> caught_up_by);

}  // namespace weir::slots
