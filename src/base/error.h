#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/result.h"

namespace weir {

/// An argument or other input is invalid.
inline Error Invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

/// The error of the last system call, for `path`: "limits.journal: fsync: No space left on device".
inline Error FromErrno(std::string_view path, std::string_view what) {
  const std::string reason = std::error_code(errno, std::generic_category()).message();
  return {Code::kUnavailable,
          std::string(path).append(": ").append(what).append(": ").append(reason)};
}

}  // namespace weir
