#pragma once

// Which domain a request belongs to that names none.

#include <string_view>

#include "policy/definition.h"

namespace weir::policy {

/// The domain of the messages that WebSocket clients of the proxy send. No request falls into it
/// that does not name it.
inline constexpr std::string_view kMessageDomain = "websocket";

/// The entry of `domains` (a map by name) for a request that names `name`. One that names none
/// belongs to `default`; if that has no policies and only one domain has, to that one, so that a
/// file with a `domain` works for callers who know of no domains (GET /v1/auth, curl).
template <typename Domains>
auto FindDomain(const Domains& domains, std::string_view name) {
  auto found = domains.find(name.empty() ? kDefaultDomain : name);
  if (!name.empty() || found != domains.end()) return found;
  for (auto one = domains.begin(); one != domains.end(); ++one) {
    if (one->first == kMessageDomain) continue;
    if (found != domains.end()) return domains.end();
    found = one;
  }
  return found;
}

}  // namespace weir::policy
