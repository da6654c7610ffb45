#include "notify/webhook_provider.h"

#include <array>
#include <utility>

#include "drivers/curl/webhook.h"

namespace weir::notify {

WebhookProvider::WebhookProvider(std::unique_ptr<curl::Webhook> webhook)
    : webhook_(std::move(webhook)) {}
WebhookProvider::~WebhookProvider() = default;

Result<std::unique_ptr<WebhookProvider>> WebhookProvider::Open(WebhookOptions options) {
  auto webhook = curl::Webhook::Open({.url = std::move(options.url),
                                      .token = std::move(options.token),
                                      .agent = "weir-sender",
                                      .timeout = options.timeout});
  if (!webhook.ok()) return webhook.error();
  return std::unique_ptr<WebhookProvider>(new WebhookProvider(std::move(*webhook)));
}

Status WebhookProvider::Deliver(const Event& event) {
  const std::array<std::string, 1> headers = {"Idempotency-Key: " + event.id};
  return webhook_->Post(EncodeEvent(event), headers);
}

}  // namespace weir::notify
