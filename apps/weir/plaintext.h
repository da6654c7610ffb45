#pragma once

#include <string_view>

namespace weir::app {

/// Warns in the log if the connection to the SQL database at `url`, the value of `setting`, may be
/// in plaintext.
void WarnOfPlaintext(std::string_view setting, std::string_view url);

}  // namespace weir::app
