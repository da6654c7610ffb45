#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "notify/provider.h"
#include "weir/result.h"

namespace weir::notify {

struct ProviderOptions {
  /// Each "[CHANNEL=]URL": console:, http(s)://…, smtp(s)://…/?from=ADDRESS. Without a channel it
  /// is for all that have none of their own. Secret: a URL may hold a password.
  std::vector<std::string> routes = {};
  std::string token = {};  ///< secret; of webhooks
  std::chrono::milliseconds timeout{5000};
};

inline constexpr std::size_t kMaxProviders = 64;

/// Whether all of them print, so that parallel deliveries gain nothing. Without any route they do.
bool OnlyConsole(const ProviderOptions& options);

/// Takes each event to the provider of its channel. A channel without one cannot be delivered to.
/// kInvalidArgument, without the URL's secrets, if a route cannot be read.
Result<std::unique_ptr<Provider>> OpenProviders(const ProviderOptions& options);

}  // namespace weir::notify
