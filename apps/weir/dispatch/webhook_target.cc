#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "dispatch/delivery_target.h"
#include "drivers/curl/webhook.h"

namespace weir::app {
namespace {

// An id in a header line: nothing in it may end the line.
std::string HeaderSafe(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain =
        static_cast<unsigned char>(c) >= 0x21 && static_cast<unsigned char>(c) < 0x7f;
    if (plain && c != '%') {
      out += c;
    } else {
      AppendPercent(out, c);
    }
  }
  return out;
}

/// A few threads with a connection each, kept alive, and a queue before them.
///
/// Thread-safe. The queue is bounded by the claims: no more events than it can hold.
class WebhookTarget final : public DeliveryTarget {
 public:
  WebhookTarget(std::unique_ptr<curl::Webhook> webhook, int workers)
      : webhook_(std::move(webhook)) {
    for (int i = 0; i < workers; ++i) {
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

  void Deliver(const slots::Claimed& event, const Latest& latest, Done done) override {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back({event, latest, std::move(done)});
    }
    filled_.notify_one();
  }

  void Stop() override {
    std::deque<Item> left;
    {
      const std::lock_guard lock(mutex_);
      left.swap(queue_);
    }
    for (const Item& item : left) {
      item.done(Error{Code::kDeadlineExceeded, "the dispatcher was stopped"});
    }
  }

 private:
  struct Item {
    slots::Claimed event;
    Latest latest;
    Done done;
  };

  void Work() {
    for (;;) {
      Item item;
      {
        std::unique_lock lock(mutex_);
        filled_.wait(lock, [this] { return closing_ || !queue_.empty(); });
        if (queue_.empty()) return;
        item = std::move(queue_.front());
        queue_.pop_front();
      }
      if (item.latest.passed()) {
        item.done(Error{Code::kDeadlineExceeded, "all workers were busy until the lease ended"});
      } else {
        item.done(Post(item.event));
      }
    }
  }

  Status Post(const slots::Claimed& event) const {
    const std::array<std::string, 3> headers = {
        "Idempotency-Key: " + HeaderSafe(event.slot.event_id),
        "Weir-Attempt: " + std::to_string(event.attempt),
        std::string("Weir-Redelivered: ") + (event.attempt > 1 ? "true" : "false")};
    Status posted = webhook_->Post(EventJson(event), headers);
    // A deadline here is that of the lease: see DeliveryTarget::Deliver.
    if (posted.ok() || posted.error().code == Code::kInvalidArgument) return posted;
    return Error{Code::kUnavailable, posted.error().message};
  }

  const std::unique_ptr<curl::Webhook> webhook_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Item> queue_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<DeliveryTarget>> MakeWebhookTarget(WebhookTargetOptions options) {
  auto webhook = curl::Webhook::Open({.url = std::move(options.url),
                                      .token = std::move(options.token),
                                      .agent = "weir-dispatch",
                                      .timeout = options.timeout});
  if (!webhook.ok()) return Error{webhook.error().code, "--webhook: " + webhook.error().message};
  return std::unique_ptr<DeliveryTarget>(
      std::make_unique<WebhookTarget>(std::move(*webhook), options.workers));
}

}  // namespace weir::app
