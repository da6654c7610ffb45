#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::config {

/// A warning for the operator if `url`, the value of `setting`, names a SQL database on another
/// machine and does not say whether to use TLS: passwords and limits may then cross the
/// network in plaintext. nullopt if it says so, even with `tls=off`. Contains no secret.
std::optional<std::string> PlaintextDoubt(std::string_view setting, std::string_view url);

}  // namespace weir::config
