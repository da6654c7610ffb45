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
  std::string token = {};  ///< secret; sent as `Authorization: Bearer …` if not empty
  std::chrono::milliseconds timeout{5000};  ///< for one request, from connecting to its answer
};

/// POSTs each event as JSON to a URL, with the event's ID as `Idempotency-Key`. 2xx means
/// delivered. A failure that does not concern the message (see curl::JudgeWebhook), a lost
/// connection and a timeout may be retried; any other status may not.
///
/// Thread-safe: each concurrent call has its own connection, kept alive.
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
