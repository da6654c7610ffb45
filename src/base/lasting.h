#pragma once

#include <system_error>

#include "weir/result.h"

namespace weir {

/// The code for what the system refused when something was opened: kInvalidArgument if it was asked
/// for the wrong thing (a file where a folder must be, no permission), so that it refuses each
/// time; kUnavailable if another attempt may succeed.
inline Code CodeOfOpening(const std::error_code& error) noexcept {
  for (const std::errc lasting :
       {std::errc::file_exists, std::errc::filename_too_long, std::errc::is_a_directory,
        std::errc::not_a_directory, std::errc::operation_not_permitted,
        std::errc::permission_denied, std::errc::read_only_file_system,
        std::errc::too_many_symbolic_link_levels}) {
    if (error == lasting) return Code::kInvalidArgument;
  }
  return Code::kUnavailable;
}

}  // namespace weir
