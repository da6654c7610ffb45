#include "notify/webhook_provider.h"

#include <curl/curl.h>

#include <array>
#include <mutex>
#include <utility>
#include <vector>

namespace weir::notify {
namespace {

struct DeleteHandle {
  void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, DeleteHandle>;

struct DeleteList {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, DeleteList>;

// What the receiver says beyond its status is not kept, and no more of it is read than this.
constexpr std::size_t kMaxAnswerBytes = std::size_t{64} * 1024;

std::size_t Discard(char* /*bytes*/, std::size_t size, std::size_t count, void* seen) {
  auto& total = *static_cast<std::size_t*>(seen);
  total += size * count;
  return total <= kMaxAnswerBytes ? size * count : 0;
}

void Add(HeaderList& headers, const std::string& line) {
  if (curl_slist* longer = curl_slist_append(headers.get(), line.c_str()); longer != nullptr) {
    static_cast<void>(headers.release());
    headers.reset(longer);
  }
}

Status Judge(long status) {
  if (status >= 200 && status < 300) return {};
  const bool passing = status == 408 || status == 425 || status == 429 || status >= 500;
  return Error{passing ? Code::kUnavailable : Code::kInvalidArgument,
               "the webhook answered " + std::to_string(status)};
}

}  // namespace

/// Connections that nobody uses just now. Thread-safe.
class WebhookProvider::Connections {
 public:
  Handle Take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return Handle(curl_easy_init());
    Handle handle = std::move(idle_.back());
    idle_.pop_back();
    return handle;
  }
  void GiveBack(Handle handle) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(handle));
  }

 private:
  std::mutex mutex_;
  std::vector<Handle> idle_;
};

WebhookProvider::WebhookProvider(WebhookOptions options)
    : options_(std::move(options)), connections_(std::make_unique<Connections>()) {}
WebhookProvider::~WebhookProvider() = default;

Result<std::unique_ptr<WebhookProvider>> WebhookProvider::Open(WebhookOptions options) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) return Error{Code::kInternal, "libcurl does not start"};
  if (!options.url.starts_with("http://") && !options.url.starts_with("https://")) {
    return Error{Code::kInvalidArgument, "the webhook's URL must begin with http:// or https://"};
  }
  return std::unique_ptr<WebhookProvider>(new WebhookProvider(std::move(options)));
}

Status WebhookProvider::Deliver(const Event& event) {
  Handle handle = connections_->Take();
  if (!handle) return Error{Code::kUnavailable, "no memory for a connection"};
  const std::string body = EncodeEvent(event);
  HeaderList headers;
  Add(headers, "Content-Type: application/json");
  Add(headers, "Idempotency-Key: " + event.id);
  Add(headers, "Expect:");
  if (!options_.token.empty()) Add(headers, "Authorization: Bearer " + options_.token);

  CURL* curl = handle.get();
  std::size_t seen = 0;
  std::array<char, CURL_ERROR_SIZE> why{};
  curl_easy_reset(curl);
  curl_easy_setopt(curl, CURLOPT_URL, options_.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "weir-sender");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, Discard);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &seen);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why.data());
  const CURLcode done = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  connections_->GiveBack(std::move(handle));

  // With a status the receiver has decided, even if the rest of its answer was lost or too long.
  if (status >= 200) return Judge(status);
  if (done == CURLE_OPERATION_TIMEDOUT) {
    return Error{Code::kDeadlineExceeded, "the webhook did not answer in time"};
  }
  return Error{Code::kUnavailable, std::string("the webhook cannot be reached: ") +
                                       (why[0] != '\0' ? why.data() : curl_easy_strerror(done))};
}

}  // namespace weir::notify
