#pragma once

#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::postgres {

/// The server accepts no writes: it is a replica.
inline constexpr std::string_view kReadOnly = "25006";

/// What an SQLSTATE means to a caller: kAlreadyExists for a violated unique constraint,
/// kFailedPrecondition for any other constraint, kDeadlineExceeded for a statement that ran too
/// long, kUnavailable when trying again may help (connection lost, server stopping, out of
/// resources, deadlock, serialization failure), kInternal for the rest.
Code CodeOf(std::string_view sqlstate) noexcept;

/// True for deadlocks and serialization failures: the transaction was rolled back, and will most
/// likely succeed if repeated.
bool IsRetryable(std::string_view sqlstate) noexcept;

/// A message of libpq, which may have several lines and ends in a newline, as one: "connection
/// refused; Is the server running?". Empty for null.
std::string OneLine(const char* text);

/// What libpq, at its most verbose, reports about a failed connection attempt.
struct ConnectError {
  std::string sqlstate = {};  ///< empty unless the server itself refused
  std::string message = {};   ///< one line, without the state and locations in the server's source
};
ConnectError ReadConnectError(std::string_view verbose);

}  // namespace weir::postgres
