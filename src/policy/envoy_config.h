#pragma once

// Configuration of Envoy's rate limit service (envoyproxy/ratelimit), read unchanged: a domain and
// a tree of descriptors. Every descriptor with a limit becomes a policy whose chain leads to it.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/definition.h"
#include "policy/fields.h"
#include "policy/yaml.h"

namespace weir::policy {

/// How deep descriptors may be nested: a chain cannot have more entries.
inline constexpr std::size_t kMaxEnvoyDepth = kMaxMatchEntries;

/// What a refused request charges, unless the file sets it: nothing, as with Weir's own files. But
/// a gateway that reports usage relies on it being counted, and has no other way to request that.
inline constexpr ChargeMode kEnvoyCharge = ChargeMode::kReports;

/// True for a mapping with `descriptors`, which Weir's own files never have.
bool IsEnvoyConfig(const yaml::Node& root) noexcept;

/// Problems go to the report; the definitions must not be used then.
std::vector<Definition> ReadEnvoyConfig(const yaml::Node& root, yaml::Report& report);

/// As above, from text that must be such a configuration.
std::vector<Definition> ParseEnvoyConfig(std::string_view text, const std::string& file,
                                         std::vector<yaml::Problem>& problems,
                                         bool lenient = false);

/// Those of the files, each read separately, that are such configurations and do not set `charge`.
/// Files that cannot be read are left out.
std::vector<std::string> FilesWithoutCharge(std::span<const std::string> files);

/// What the default `charge` means to users of envoyproxy/ratelimit.
inline constexpr std::string_view kEnvoyChargeNote =
    "when one limit refuses a request, the others are not charged; hits that a descriptor "
    "carries, such as used tokens, always count (charge: reports). envoyproxy/ratelimit charges "
    "every limit, even the one that refuses. For that, set charge: always";

/// Formats definitions of one domain, as from ReadEnvoyConfig, as one of Weir's own policy files.
std::string FormatChains(std::span<const Definition> definitions);

}  // namespace weir::policy
