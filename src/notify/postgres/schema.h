#pragma once

#include <span>

namespace weir::notify::postgres {

std::span<const char* const> Migrations() noexcept;

// Times are microseconds since the epoch on our side and `timestamp` (UTC) in the table.

/// Locks the users' rows in one order for all, so that nobody deadlocks. $1: text[].
extern const char* const kLockRows;
/// As kLockRows without the lock; a seventh column is 1 if channels of the user have limits.
extern const char* const kReadRows;
/// $1 users, $2 counts, $3 times of the last refresh, $4 the backend that holds the locks: a
/// connection that was lost and made anew holds none and must not write.
extern const char* const kWriteRows;
/// $1 users, $2 counts to add, $3 windows they belong to.
extern const char* const kAddCounts;
/// $1 users, $2 their last refresh as read, $3 now.
extern const char* const kRefreshRows;
/// $1 user or ChannelKey, $2 limit, $3 window, $4 now.
extern const char* const kPutRow;
/// The same, unless there is a row.
extern const char* const kEnsureRow;
/// $1 user. One row if there was one.
extern const char* const kRemoveRow;

/// $1 users, $2 keys (pairwise), $3 the oldest time that counts.
extern const char* const kFindKeys;
/// $1 users, $2 keys, $3 digests, $4 event ids, $5 limits, $6 remaining, $7 resets, $8 now,
/// $9 the backend, or 0 for any.
extern const char* const kPutKeys;
/// $1 the oldest time that counts.
extern const char* const kSweepKeys;
/// Messages as accepted, unless the sender has reported them already. $1 ids, $2 users, $3
/// channels, $4 recipients, $5 times, $6 the backend, or 0 for any.
extern const char* const kPutMessages;
/// $1 the oldest time that is kept of messages that were sent or dropped.
extern const char* const kSweepMessages;

/// For the time of a transaction. $1 the longest wait for a lock, $2 the longest pause between
/// statements, both in milliseconds as text.
extern const char* const kBounds;

}  // namespace weir::notify::postgres
