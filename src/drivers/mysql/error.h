#pragma once

#include "weir/result.h"

namespace weir::mysql {

inline constexpr unsigned kNoSuchTable = 1146;

/// What an error number means to a caller: kUnavailable when trying again may help (connection
/// lost, server stopping, out of resources, deadlock, lock wait timeout),
/// kDeadlineExceeded for a statement that ran too long, kPermissionDenied, kInternal for the rest.
Code CodeOf(unsigned number) noexcept;

/// True for deadlocks: the transaction was rolled back, and will most likely succeed if repeated.
bool IsRetryable(unsigned number) noexcept;

/// True if the session is no longer usable: the server is stopping, the session was killed, it
/// was idle for too long, or the server has become a replica and accepts no more writes.
bool EndsSession(unsigned number) noexcept;

/// True for the client's own errors: whether the server ran the statement is unknown.
bool IsLost(unsigned number) noexcept;

}  // namespace weir::mysql
