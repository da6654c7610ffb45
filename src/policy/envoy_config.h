#pragma once

// Configuration of Envoy's rate limit service (envoyproxy/ratelimit), read as it is: a domain and a
// tree of descriptors. Every descriptor with a limit becomes a policy whose chain leads to it.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/definition.h"
#include "policy/fields.h"
#include "policy/yaml.h"

namespace weir::policy {

/// How deep descriptors may be nested: a chain has no more entries.
inline constexpr std::size_t kMaxEnvoyDepth = kMaxMatchEntries;

/// What a refused request charges, unless the file says: nothing, as with Weir's own files. But a
/// gateway that reports what was used relies on being counted, which there is no other way to say.
inline constexpr ChargeMode kEnvoyCharge = ChargeMode::kReports;

/// True for a mapping with `descriptors`, which a file of Weir's own never has.
bool IsEnvoyConfig(const yaml::Node& root) noexcept;

/// Problems go to the report; the definitions are then not to be used.
std::vector<Definition> ReadEnvoyConfig(const yaml::Node& root, yaml::Report& report);

/// The same from text that must be such a configuration.
std::vector<Definition> ParseEnvoyConfig(std::string_view text, const std::string& file,
                                         std::vector<yaml::Problem>& problems,
                                         bool lenient = false);

/// The files among these, each by itself, that are such configurations and do not say `charge`.
/// What cannot be read is left out.
std::vector<std::string> FilesWithoutCharge(std::span<const std::string> files);

/// What the usual `charge` means to those who come from envoyproxy/ratelimit.
inline constexpr std::string_view kEnvoyChargeNote =
    "when one limit refuses a request, the others are not charged; hits that a descriptor "
    "carries, such as used tokens, always count (charge: reports). envoyproxy/ratelimit charges "
    "every limit, even the one that refuses. For that, set charge: always";

/// Definitions of one domain, as ReadEnvoyConfig makes them, in Weir's own form.
std::string FormatChains(std::span<const Definition> definitions);

}  // namespace weir::policy
