#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "weir/result.h"

namespace weir::curl {

struct WebhookOptions {
  std::string url = {};    ///< http:// or https://
  std::string token = {};  ///< secret; sent as `Authorization: Bearer …` if not empty
  std::string agent = {};  ///< User-Agent
  std::chrono::milliseconds timeout{5000};  ///< for one request, from connecting to its answer
};

/// POSTs JSON to one URL. Redirects are not followed; certificates are verified.
///
/// A request is sent once. libcurl by itself would send it again if the receiver closes a
/// kept-alive connection without an answer, although the receiver may have processed it;
/// here that is an error like any other, so that a caller that repeats the request knows that it
/// is a repetition.
///
/// Thread-safe: concurrent calls have a connection each, kept alive.
class Webhook {
 public:
  /// kInvalidArgument if the URL is neither http:// nor https://.
  static Result<std::unique_ptr<Webhook>> Open(WebhookOptions options);
  ~Webhook();

  /// Ok: 2xx. kInvalidArgument: the receiver refuses this body, now and later. kDeadlineExceeded:
  /// no answer in time. kUnavailable: any other failure that may pass. After the last two the
  /// receiver may have processed it. `headers` are lines such as "Name: value".
  Status Post(const std::string& body, std::span<const std::string> headers);

 private:
  class Connections;
  explicit Webhook(WebhookOptions options);

  const WebhookOptions options_;
  std::unique_ptr<Connections> connections_;
};

/// What a status means; see Webhook::Post. Those that are about the receiver and not about
/// what was sent may pass: redirects, 401, 403, 404, 405, 407 (a maintenance page, a proxy without
/// its service, a token that has expired), 408, 425, 429 and 5xx.
Status JudgeWebhook(long status);

}  // namespace weir::curl
