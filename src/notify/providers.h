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
  /// Each "[CHANNEL=]URL": console:, http(s)://…, smtp(s)://…/?from=ADDRESS. One without a channel
  /// is for all channels that have none of their own. Secret: a URL may hold a password.
  std::vector<std::string> routes = {};
  std::string token = {};  ///< secret; for webhooks
  std::chrono::milliseconds timeout{5000};
};

inline constexpr std::size_t kMaxProviders = 64;

/// Whether all of them print, so that parallel deliveries gain nothing. True without any route.
bool OnlyConsole(const ProviderOptions& options);

/// Passes each event to the provider of its channel. A channel without one cannot be delivered to.
/// kInvalidArgument, without the URL's secrets, if a route is invalid.
Result<std::unique_ptr<Provider>> OpenProviders(const ProviderOptions& options);

}  // namespace weir::notify
