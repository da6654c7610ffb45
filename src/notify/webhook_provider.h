#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "notify/provider.h"
#include "weir/result.h"

namespace weir::notify {

struct WebhookOptions {
  std::string url = {};    ///< http:// or https://
  std::string token = {};  ///< secret; goes as `Authorization: Bearer …` if not empty
  std::chrono::milliseconds timeout{5000};  ///< of one request, from connecting to its answer
};

/// POSTs each event as JSON to a URL, with the event's ID as `Idempotency-Key`. 2xx means
/// delivered. 408, 425, 429, 5xx, a lost connection or a timeout may be retried; any other status
/// may not. Redirects are not followed; certificates are verified.
///
/// Thread-safe: every call that runs at the same time has a connection of its own, kept alive.
class WebhookProvider final : public Provider {
 public:
  /// kInvalidArgument if the URL is neither http:// nor https://.
  static Result<std::unique_ptr<WebhookProvider>> Open(WebhookOptions options);
  ~WebhookProvider() override;

  Status Deliver(const Event& event) override;

 private:
  class Connections;
  explicit WebhookProvider(WebhookOptions options);

  const WebhookOptions options_;
  std::unique_ptr<Connections> connections_;
};

}  // namespace weir::notify
