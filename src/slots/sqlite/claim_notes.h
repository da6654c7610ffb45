#pragma once

#include <cstddef>
#include <vector>

#include "drivers/sqlite/connection.h"
#include "slots/execution.h"

namespace weir::slots::sqlite {

// Jobs of the writer: see SlotStore.

/// Runs in the transaction of the claim.
Status NoteClaim(weir::sqlite::Connection& connection, const ClaimRequest& request,
                 const Claim& claim);
Result<std::vector<ClaimNote>> TakeClaimNotes(weir::sqlite::Connection& connection, Millis now);
Result<std::size_t> ForgetClaimNotes(weir::sqlite::Connection& connection,
                                     const std::vector<ClaimNote>& notes);

}  // namespace weir::slots::sqlite
