#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "drivers/kafka/producer.h"
#include "notify/publisher.h"
#include "weir/result.h"

namespace weir::notify::kafka {

struct PublisherOptions {
  /// After this and at most another second, an unconfirmed event is given up.
  std::chrono::milliseconds timeout{2000};
  /// Partitions of the topic if this creates it.
  int partitions = 3;
  std::string topic = std::string(kTopic);
};

/// Publishes events to Kafka's topic `sms-outbound` as JSON. The key is the user's ID, so a user's
/// events keep their order.
///
/// Thread-safe.
class KafkaPublisher final : public Publisher {
 public:
  /// `url` is as for weir::kafka::ParseUrl. Creates the topic if it does not exist; an unreachable
  /// broker is not an error, since it may come back.
  static Result<std::unique_ptr<KafkaPublisher>> Open(std::string_view url,
                                                      const PublisherOptions& options = {});

  void Publish(Event event, Done done) override;

 private:
  KafkaPublisher(std::unique_ptr<weir::kafka::Producer> producer, std::string topic)
      : topic_(std::move(topic)), producer_(std::move(producer)) {}

  const std::string topic_;
  std::unique_ptr<weir::kafka::Producer> producer_;
};

}  // namespace weir::notify::kafka
