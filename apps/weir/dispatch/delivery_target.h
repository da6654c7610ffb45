#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "slots/execution.h"
#include "weir/result.h"

namespace weir::app {

/// Until when a delivery may begin, by two clocks: the steady one stops while the machine is
/// suspended, and the machine's own is set when it resumes.
struct Latest {
  std::chrono::steady_clock::time_point steady;
  std::chrono::system_clock::time_point wall;

  static Latest In(std::chrono::milliseconds left) {
    return {std::chrono::steady_clock::now() + left, std::chrono::system_clock::now() + left};
  }
  bool passed() const {
    return std::chrono::steady_clock::now() > steady || std::chrono::system_clock::now() > wall;
  }
};

/// Where `weir dispatch` delivers events.
///
/// Thread-safe.
class DeliveryTarget {
 public:
  /// Called once, on any thread, maybe before Deliver returns. kInvalidArgument: trying again will
  /// not help. Any other error: it may, and the event may have been delivered.
  using Done = std::function<void(Status)>;

  virtual ~DeliveryTarget() = default;

  /// A delivery that has not begun by `latest` must not begin any more: it would not be over when
  /// the lease ends. It is reported as kDeadlineExceeded.
  virtual void Deliver(const slots::Claimed& event, const Latest& latest, Done done) = 0;

  /// Deliveries that have not begun do not begin any more: they end with kDeadlineExceeded, as if
  /// their time were over. Those that have begun end as usual.
  virtual void Stop() {}
};

struct WebhookTargetOptions {
  std::string url = {};
  std::string token = {};  ///< secret; sent as `Authorization: Bearer …` if not empty
  std::chrono::milliseconds timeout{5000};
  int workers = 16;  ///< requests at the same time
};

/// A JSON line for each event on standard output, given up if it is not read within `timeout`.
/// `on_gone` is called when nobody reads it any more, which no retry helps with; on any thread,
/// more than once, and must not wait.
std::unique_ptr<DeliveryTarget> MakeStdoutTarget(std::chrono::milliseconds timeout,
                                                 std::function<void()> on_gone);
/// POSTs each event: 2xx is delivered; what says nothing about the event (curl::JudgeWebhook) and
/// no answer are tried again.
Result<std::unique_ptr<DeliveryTarget>> MakeWebhookTarget(WebhookTargetOptions options);
/// kafka://…: the key is the event's id, the value its payload, or the event as JSON if it has
/// none.
/// A message that the broker has not confirmed within `timeout` is abandoned.
Result<std::unique_ptr<DeliveryTarget>> MakeKafkaTarget(const std::string& broker,
                                                        const std::string& topic,
                                                        std::chrono::milliseconds timeout);

/// The event as JSON: eventId, configName, tenant, requestedTime, scheduledTime, attempt,
/// redelivered, payload.
std::string EventJson(const slots::Claimed& event);

}  // namespace weir::app
