#pragma once

#include "weir/result.h"

namespace weir::mysql {

inline constexpr unsigned kNoSuchTable = 1146;

/// What an error number means to a caller: kUnavailable when trying again may help (connection
/// lost, server stopping, out of resources, deadlock, a lock that was not had in time),
/// kDeadlineExceeded for a statement that ran too long, kPermissionDenied, kInternal for the rest.
Code CodeOf(unsigned number) noexcept;

/// True for deadlocks: the transaction was undone, and the same again will most likely do.
bool IsRetryable(unsigned number) noexcept;

/// True if the session is of no more use: the server is stopping, somebody killed the session, it
/// was idle for too long, or the server has become a replica and takes no more writes.
bool EndsSession(unsigned number) noexcept;

/// True for the client's own errors: whether the server ran the statement is unknown.
bool IsLost(unsigned number) noexcept;

}  // namespace weir::mysql
