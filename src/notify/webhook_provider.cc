#include "notify/webhook_provider.h"

#include <array>
#include <utility>

#include "base/url.h"
#include "notify/curl.h"

namespace weir::notify {
namespace {

// What the receiver says beyond its status is not kept, and no more of it is read than this.
constexpr std::size_t kMaxAnswerBytes = std::size_t{64} * 1024;

std::size_t Discard(char* /*bytes*/, std::size_t size, std::size_t count, void* seen) {
  auto& total = *static_cast<std::size_t*>(seen);
  total += size * count;
  return total <= kMaxAnswerBytes ? size * count : 0;
}

Status Judge(long status) {
  if (status >= 200 && status < 300) return {};
  const bool passing = status == 408 || status == 425 || status == 429 || status >= 500;
  return Error{passing ? Code::kUnavailable : Code::kInvalidArgument,
               "the webhook answered " + std::to_string(status)};
}

}  // namespace

class WebhookProvider::Connections : public curl::Connections {};

WebhookProvider::WebhookProvider(WebhookOptions options)
    : options_(std::move(options)), connections_(std::make_unique<Connections>()) {}
WebhookProvider::~WebhookProvider() = default;

Result<std::unique_ptr<WebhookProvider>> WebhookProvider::Open(WebhookOptions options) {
  if (Status ready = curl::Start(); !ready.ok()) return ready.error();
  const Result<Url> url = ParseUrl(options.url);
  if (!url.ok() || (url->scheme != "http" && url->scheme != "https") || url->hosts.size() != 1) {
    return Error{Code::kInvalidArgument, "the webhook's URL must begin with http:// or https://"};
  }
  return std::unique_ptr<WebhookProvider>(new WebhookProvider(std::move(options)));
}

Status WebhookProvider::Deliver(const Event& event) {
  curl::Handle handle = connections_->Take();
  if (!handle) return Error{Code::kUnavailable, "out of memory"};
  const std::string body = EncodeEvent(event);
  curl::List headers;
  curl::Append(headers, "Content-Type: application/json");
  curl::Append(headers, "Idempotency-Key: " + event.id);
  curl::Append(headers, "Expect:");
  if (!options_.token.empty()) curl::Append(headers, "Authorization: Bearer " + options_.token);

  CURL* easy = handle.get();
  std::size_t seen = 0;
  std::array<char, CURL_ERROR_SIZE> why{};
  curl_easy_reset(easy);
  curl_easy_setopt(easy, CURLOPT_URL, options_.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "weir-sender");
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, Discard);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &seen);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why.data());
  const CURLcode done = curl_easy_perform(easy);
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, nullptr);
  connections_->GiveBack(std::move(handle));

  // With a status the receiver has decided, even if the rest of its answer was lost or too long.
  if (status >= 200) return Judge(status);
  if (done == CURLE_OPERATION_TIMEDOUT) {
    return Error{Code::kDeadlineExceeded, "the webhook timed out"};
  }
  return Error{Code::kUnavailable, std::string("cannot reach the webhook: ") +
                                       (why[0] != '\0' ? why.data() : curl_easy_strerror(done))};
}

}  // namespace weir::notify
