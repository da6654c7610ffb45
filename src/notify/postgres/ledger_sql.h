#pragma once

// The statements of the ledger. Times are microseconds since the epoch, states the numbers of
// MessageState.

namespace weir::notify::postgres {

/// $1 an id.
extern const char* const kFindMessage;
/// $1 a user or '', $2 a state or -1, $3 and $4 the last of the page before, $5 the most.
extern const char* const kListMessagesOfUser;
extern const char* const kListMessagesOfState;
/// $1 a user or '', $2 and $3 the last of the page before, $4 the most.
extern const char* const kListDead;
extern const char* const kListDeadOfUser;
/// $1 an id.
extern const char* const kFindDead;
extern const char* const kCountDead;
/// $1 behind this user, $2 the most.
extern const char* const kListUsers;
/// $1 user, $2 from, $3 to, $4 zone, $5 channels.
extern const char* const kPutPreferences;
/// $1 users.
extern const char* const kFindPreferences;

/// How deliveries ended; a message that was sent stays so. $1 ids, $2 users, $3 channels,
/// $4 recipients, $5 states, $6 attempts, $7 errors, $8 accepted at, $9 not before, $10 now.
extern const char* const kReport;
/// $1 ids of messages that were sent.
extern const char* const kForgetDead;
/// $1 ids, $2 users, $3 events, $4 errors, $5 attempts, $6 now.
extern const char* const kKeepDead;
/// $1 ids, $2 events, $3 times.
extern const char* const kKeepDelayed;
/// $1 ids; those of them that were sent.
extern const char* const kFindSettled;
/// $1 now, $2 the most, $3 the end of the lease.
extern const char* const kTakeDue;
/// $1 ids, $2 the end of the lease.
extern const char* const kForgetDelayed;

/// Takes dead letters for a replay: their messages are queued, and nobody else may take them before
/// $2. $1 ids, $3 now.
extern const char* const kClaimDead;
/// They are in the queue. $1 ids, $2 as above.
extern const char* const kForgetClaimed;
/// They are not. $1 ids, $2 as above.
extern const char* const kReturnClaimed;
/// Whoever claimed them is gone. $1 now.
extern const char* const kReturnExpired;
/// $1 ids, $2 now.
extern const char* const kDropDead;

}  // namespace weir::notify::postgres
