#include "dispatch/delivery_target.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/bounded_write.h"
#include "base/json_writer.h"
#include "drivers/kafka/producer.h"
#include "drivers/kafka/topics.h"
#include "drivers/kafka/url.h"
#include "telemetry/log.h"

namespace weir::app {
namespace {

constexpr int kPartitions = 3;

/// Thread-safe: lines are not mixed. One that is not written by its deadline may be there in part.
class StdoutTarget final : public DeliveryTarget {
 public:
  StdoutTarget(std::chrono::milliseconds timeout, std::function<void()> on_gone)
      : timeout_(timeout), on_gone_(std::move(on_gone)) {}

  void Deliver(const slots::Claimed& event, const Latest& latest, Done done) override {
    // Not until the lease ends: who delivers waits for it, and may be told to stop.
    const auto deadline = std::chrono::steady_clock::now() + timeout_;
    done(Write(EventJson(event) + '\n', std::min(latest.steady, deadline)));
  }

 private:
  Status Write(const std::string& line, std::chrono::steady_clock::time_point latest) {
    const std::lock_guard lock(mutex_);
    const Status written = out_.Write(line, latest);
    if (written.ok()) return {};
    if (pollfd pipe{STDOUT_FILENO, 0, 0}; poll(&pipe, 1, 0) > 0 && (pipe.revents & POLLERR) != 0) {
      on_gone_();
    }
    return Error{Code::kUnavailable, "cannot write to standard output: " + written.error().message};
  }

  const std::chrono::milliseconds timeout_;
  const std::function<void()> on_gone_;
  std::mutex mutex_;
  LineWriter out_{STDOUT_FILENO};
};

/// Thread-safe.
class KafkaTarget final : public DeliveryTarget {
 public:
  KafkaTarget(std::unique_ptr<kafka::Producer> producer, std::string topic)
      : producer_(std::move(producer)), topic_(std::move(topic)) {}

  void Deliver(const slots::Claimed& event, const Latest& /*latest*/, Done done) override {
    const std::string body = event.payload.empty() ? EventJson(event) : event.payload;
    const std::string attempt = std::to_string(event.attempt);
    const std::string scheduled = slots::FormatInstant(event.slot.scheduled);
    producer_->Publish({.topic = topic_,
                        .key = event.slot.event_id,
                        .payload = body,
                        .headers = {{"weir-config", event.slot.config},
                                    {"weir-tenant", event.slot.tenant},
                                    {"weir-scheduled-time", scheduled},
                                    {"weir-attempt", attempt},
                                    {"weir-redelivered", event.attempt > 1 ? "true" : "false"}}},
                       [done = std::move(done)](Status published) {
                         // It may be on the topic: that is not a delivery that never began.
                         const bool unknown =
                             !published.ok() && published.error().code == Code::kDeadlineExceeded;
                         done(unknown ? Error{Code::kUnavailable, published.error().message}
                                      : std::move(published));
                       });
  }

 private:
  std::unique_ptr<kafka::Producer> producer_;
  std::string topic_;
};

}  // namespace

std::string EventJson(const slots::Claimed& event) {
  return JsonObject([&](JsonWriter& json) {
    json.Field("eventId", event.slot.event_id).Field("configName", event.slot.config);
    if (!event.slot.tenant.empty()) json.Field("tenant", event.slot.tenant);
    json.Field("requestedTime", slots::FormatInstant(event.slot.requested))
        .Field("scheduledTime", slots::FormatInstant(event.slot.scheduled))
        .Field("attempt", event.attempt)
        .Field("redelivered", event.attempt > 1);
    if (!event.payload.empty()) json.Field("payload", event.payload);
  });
}

std::unique_ptr<DeliveryTarget> MakeStdoutTarget(std::chrono::milliseconds timeout,
                                                 std::function<void()> on_gone) {
  return std::make_unique<StdoutTarget>(timeout, std::move(on_gone));
}

Result<std::unique_ptr<DeliveryTarget>> MakeKafkaTarget(const std::string& broker,
                                                        const std::string& topic,
                                                        std::chrono::milliseconds timeout) {
  auto url = kafka::ParseUrl(broker);
  if (!url) return url.error();
  const Status made = kafka::MakeTopics(*url, {{topic, kPartitions}});
  if (!made) {
    if (made.error().code == Code::kInvalidArgument) return made.error();
    telemetry::Log(telemetry::Level::kWarn, "cannot find or create the topic",
                   {{"reason", std::string_view(made.error().message)}});
  }
  auto producer = kafka::Producer::Open({.url = *std::move(url), .delivery_timeout = timeout});
  if (!producer) return producer.error();
  return std::unique_ptr<DeliveryTarget>(
      std::make_unique<KafkaTarget>(*std::move(producer), topic));
}

}  // namespace weir::app
