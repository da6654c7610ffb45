#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::config {

/// A sentence for the operator if `url`, the value of `setting`, names a SQL database on another
/// machine and does not say whether the connection has TLS: passwords and limits may then cross the
/// network in plaintext. None if it says so, be it `tls=off`. Shows no secret.
std::optional<std::string> PlaintextDoubt(std::string_view setting, std::string_view url);

}  // namespace weir::config
