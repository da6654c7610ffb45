#include <curl/curl.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/url.h"
#include "dispatch/delivery_target.h"

namespace weir::app {
namespace {

constexpr std::size_t kMaxAnswerBytes = std::size_t{64} * 1024;

struct DeleteHandle {
  void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, DeleteHandle>;

/// Header lines of one request. Not thread-safe.
class Headers {
 public:
  Headers() = default;
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  ~Headers() { curl_slist_free_all(list_); }
  void Add(const std::string& line) {
    if (curl_slist* longer = curl_slist_append(list_, line.c_str())) list_ = longer;
  }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

// What the receiver says beyond its status is not kept.
std::size_t Discard(char* /*bytes*/, std::size_t size, std::size_t count, void* seen) {
  auto& total = *static_cast<std::size_t*>(seen);
  total += size * count;
  return total <= kMaxAnswerBytes ? size * count : 0;
}

// An id that stands in a header line: nothing in it may end the line.
std::string HeaderSafe(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain =
        static_cast<unsigned char>(c) >= 0x21 && static_cast<unsigned char>(c) < 0x7f;
    if (plain && c != '%') {
      out += c;
      continue;
    }
    constexpr const char* kDigits = "0123456789ABCDEF";
    out += '%';
    out += kDigits[static_cast<unsigned char>(c) >> 4U];
    out += kDigits[static_cast<unsigned char>(c) & 15U];
  }
  return out;
}

Status Judge(long status) {
  if (status >= 200 && status < 300) return {};
  const bool passing = status == 408 || status == 425 || status == 429 || status >= 500;
  return Error{passing ? Code::kUnavailable : Code::kInvalidArgument,
               "the webhook answered " + std::to_string(status)};
}

/// A few threads with a connection each, kept alive, and a queue before them.
///
/// Thread-safe. The queue is bounded by who claims: no more events than it may hold.
class WebhookTarget final : public DeliveryTarget {
 public:
  explicit WebhookTarget(WebhookTargetOptions options) : options_(std::move(options)) {
    for (int i = 0; i < options_.workers; ++i) {
      threads_.emplace_back([this] { Work(); });
    }
  }

  ~WebhookTarget() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    filled_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void Deliver(const slots::Claimed& event, Time latest, Done done) override {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back({event, latest, std::move(done)});
    }
    filled_.notify_one();
  }

 private:
  struct Item {
    slots::Claimed event;
    Time latest;
    Done done;
  };

  void Work() {
    const Handle handle(curl_easy_init());
    for (;;) {
      Item item;
      {
        std::unique_lock lock(mutex_);
        filled_.wait(lock, [this] { return closing_ || !queue_.empty(); });
        if (queue_.empty()) return;
        item = std::move(queue_.front());
        queue_.pop_front();
      }
      if (std::chrono::steady_clock::now() > item.latest) {
        item.done(Error{Code::kDeadlineExceeded, "all workers were busy until the lease ended"});
        continue;
      }
      item.done(handle ? Post(handle.get(), item.event)
                       : Status(Error{Code::kUnavailable, "out of memory"}));
    }
  }

  Status Post(CURL* curl, const slots::Claimed& event) const {
    const std::string body = EventJson(event);
    Headers headers;
    headers.Add("Content-Type: application/json");
    headers.Add("Idempotency-Key: " + HeaderSafe(event.slot.event_id));
    headers.Add("Weir-Attempt: " + std::to_string(event.attempt));
    headers.Add(std::string("Weir-Redelivered: ") + (event.attempt > 1 ? "true" : "false"));
    headers.Add("Expect:");
    if (!options_.token.empty()) headers.Add("Authorization: Bearer " + options_.token);
    std::size_t seen = 0;
    std::array<char, CURL_ERROR_SIZE> why{};
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, options_.url.c_str());
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "weir-dispatch");
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
    if (status >= 200) return Judge(status);
    return Error{Code::kUnavailable, std::string("no response from the webhook: ") +
                                         (why[0] != '\0' ? why.data() : curl_easy_strerror(done))};
  }

  const WebhookTargetOptions options_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Item> queue_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<DeliveryTarget>> MakeWebhookTarget(WebhookTargetOptions options) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) return Error{Code::kInternal, "cannot initialize libcurl"};
  const Result<Url> url = ParseUrl(options.url);
  if (!url.ok() || (url->scheme != "http" && url->scheme != "https") || url->hosts.size() != 1) {
    return Error{Code::kInvalidArgument, "--webhook must begin with http:// or https://"};
  }
  return std::unique_ptr<DeliveryTarget>(std::make_unique<WebhookTarget>(std::move(options)));
}

}  // namespace weir::app
