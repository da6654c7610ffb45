#include "drivers/curl/webhook.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/url.h"
#include "drivers/curl/handles.h"

namespace weir::curl {
namespace {

// The receiver's body is not kept, and no more of it is read than this.
constexpr std::size_t kMaxAnswerBytes = std::size_t{64} * 1024;
// Many servers close connections that were idle for five seconds, some just as a request arrives.
constexpr long kMaxIdleSeconds = 3;
// The statuses below 500 that may pass.
constexpr std::array<long, 8> kPassing = {401, 403, 404, 405, 407, 408, 425, 429};

std::size_t Discard(char* /*bytes*/, std::size_t size, std::size_t count, void* seen) {
  auto& total = *static_cast<std::size_t*>(seen);
  total += size * count;
  return total <= kMaxAnswerBytes ? size * count : 0;
}

// Cannot rewind: libcurl cannot send the same body again, and reports that.
std::size_t ReadOnce(char* buffer, std::size_t size, std::size_t count, void* from) {
  auto& unsent = *static_cast<std::string_view*>(from);
  const std::size_t bytes = std::min(size * count, unsent.size());
  std::copy_n(unsent.begin(), bytes, buffer);
  unsent.remove_prefix(bytes);
  return bytes;
}

List HeaderLines(std::span<const std::string> headers, const std::string& token) {
  List lines;
  Append(lines, "Content-Type: application/json");
  Append(lines, "Expect:");
  for (const std::string& line : headers) Append(lines, line);
  if (!token.empty()) Append(lines, "Authorization: Bearer " + token);
  return lines;
}

Error NoAnswer(CURLcode code, const char* detail) {
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return {Code::kDeadlineExceeded, "the webhook timed out"};
  }
  if (code == CURLE_SEND_FAIL_REWIND || code == CURLE_GOT_NOTHING) {
    return {Code::kUnavailable, "the webhook closed the connection without a response"};
  }
  return {Code::kUnavailable, std::string("cannot reach the webhook: ") +
                                  (*detail != '\0' ? detail : curl_easy_strerror(code))};
}

}  // namespace

Status JudgeWebhook(long status) {
  if (status >= 200 && status < 300) return {};
  const bool passing = (status >= 300 && status < 400) || status >= 500 ||
                       std::find(kPassing.begin(), kPassing.end(), status) != kPassing.end();
  return Error{passing ? Code::kUnavailable : Code::kInvalidArgument,
               "the webhook answered " + std::to_string(status)};
}

class Webhook::Connections : public curl::Connections {};

Webhook::Webhook(WebhookOptions options)
    : options_(std::move(options)), connections_(std::make_unique<Connections>()) {}
Webhook::~Webhook() = default;

Result<std::unique_ptr<Webhook>> Webhook::Open(WebhookOptions options) {
  if (Status ready = Start(); !ready.ok()) return ready.error();
  const Result<Url> url = ParseUrl(options.url);
  if (!url.ok() || (url->scheme != "http" && url->scheme != "https") || url->hosts.size() != 1) {
    return Error{Code::kInvalidArgument, "the webhook's URL must begin with http:// or https://"};
  }
  return std::unique_ptr<Webhook>(new Webhook(std::move(options)));
}

Status Webhook::Post(const std::string& body, std::span<const std::string> headers) {
  Handle handle = connections_->Take();
  if (!handle) return Error{Code::kUnavailable, "out of memory"};
  const List lines = HeaderLines(headers, options_.token);
  std::string_view unsent = body;
  std::size_t seen = 0;
  std::array<char, CURL_ERROR_SIZE> why{};
  CURL* const easy = handle.get();
  curl_easy_reset(easy);
  curl_easy_setopt(easy, CURLOPT_URL, options_.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options_.agent.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, lines.get());
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(easy, CURLOPT_READFUNCTION, ReadOnce);
  curl_easy_setopt(easy, CURLOPT_READDATA, &unsent);
  curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, kMaxIdleSeconds);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // does not wait for name servers
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, Discard);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &seen);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why.data());
  const CURLcode done = curl_easy_perform(easy);
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, nullptr);
  connections_->GiveBack(std::move(handle));
  // With a status the receiver has decided, even if the rest of its answer was lost or too long.
  if (status >= 200) return JudgeWebhook(status);
  return NoAnswer(done, why.data());
}

}  // namespace weir::curl
