#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "notify/provider.h"
#include "weir/result.h"

namespace weir::curl {
class Webhook;
}  // namespace weir::curl

namespace weir::notify {

struct WebhookOptions {
  std::string url = {};    ///< http:// or https://
  std::string token = {};  ///< secret; goes as `Authorization: Bearer …` if not empty
  std::chrono::milliseconds timeout{5000};  ///< of one request, from connecting to its answer
};

/// POSTs each event as JSON to a URL, with the event's ID as `Idempotency-Key`. 2xx means
/// delivered. What says nothing about the message may be retried (see curl::JudgeWebhook), as may a
/// lost connection and a timeout; any other status may not.
///
/// Thread-safe: every call that runs at the same time has a connection of its own, kept alive.
class WebhookProvider final : public Provider {
 public:
  /// kInvalidArgument if the URL is neither http:// nor https://.
  static Result<std::unique_ptr<WebhookProvider>> Open(WebhookOptions options);
  ~WebhookProvider() override;

  Status Deliver(const Event& event) override;

 private:
  explicit WebhookProvider(std::unique_ptr<curl::Webhook> webhook);

  std::unique_ptr<curl::Webhook> webhook_;
};

}  // namespace weir::notify
