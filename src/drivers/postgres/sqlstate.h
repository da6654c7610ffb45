#pragma once

#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::postgres {

/// The server takes no writes: it is a replica.
inline constexpr std::string_view kReadOnly = "25006";

/// What an SQLSTATE means to a caller: kAlreadyExists for a violated unique constraint,
/// kFailedPrecondition for any other constraint, kDeadlineExceeded for a statement that ran too
/// long, kUnavailable when trying again may help (connection lost, server stopping, out of
/// resources, deadlock, serialization failure), kInternal for the rest.
Code CodeOf(std::string_view sqlstate) noexcept;

/// True for deadlocks and serialization failures: the transaction was undone, and the same again
/// will most likely do.
bool IsRetryable(std::string_view sqlstate) noexcept;

/// What libpq, at its most verbose, says of a connection that was not made.
struct ConnectError {
  std::string sqlstate = {};  ///< empty unless the server itself refused
  std::string message = {};   ///< without it, and without places in the server's source
};
ConnectError ReadConnectError(std::string_view verbose);

}  // namespace weir::postgres
