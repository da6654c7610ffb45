#pragma once

// Which domain a request belongs to if it does not name one.

#include <algorithm>
#include <span>
#include <string_view>

#include "policy/definition.h"

namespace weir::policy {

/// The domain of the messages that WebSocket clients of the proxy send. Only requests that name it
/// belong to it.
inline constexpr std::string_view kMessageDomain = "websocket";

/// Which of these domains, those that have policies, a request that names none belongs to:
/// `default`; if that has no policies, the only other one, so that a file with a `domain` works for
/// callers that do not know about domains (GET /v1/auth, curl). If there are several, `of_files`,
/// the only domain of the policy files, if it is among them: other domains do not change that.
inline std::string_view ImpliedDomain(std::span<const std::string_view> domains,
                                      std::string_view of_files) {
  std::string_view only;
  bool several = false;
  for (const std::string_view domain : domains) {
    if (domain == kDefaultDomain) return domain;
    if (domain == kMessageDomain || domain == only) continue;
    several = several || !only.empty();
    only = domain;
  }
  if (several) {
    const bool has = std::find(domains.begin(), domains.end(), of_files) != domains.end();
    return has ? of_files : kDefaultDomain;
  }
  return only.empty() ? kDefaultDomain : only;
}

}  // namespace weir::policy
