#include "notify/kafka/publisher.h"

#include <string>

#include "drivers/kafka/topics.h"
#include "telemetry/log.h"

namespace weir::notify::kafka {

Result<std::unique_ptr<KafkaPublisher>> KafkaPublisher::Open(std::string_view url,
                                                             const PublisherOptions& options) {
  auto parsed = weir::kafka::ParseUrl(url);
  if (!parsed) return parsed.error();
  const Status made = weir::kafka::MakeTopics(*parsed, {{options.topic, options.partitions}});
  if (!made) {
    if (made.error().code == Code::kInvalidArgument) return made.error();
    telemetry::Log(telemetry::Level::kWarn, "cannot find or create the topic",
                   {{"topic", std::string_view(options.topic)},
                    {"reason", std::string_view(made.error().message)}});
  }
  auto producer =
      weir::kafka::Producer::Open({.url = *std::move(parsed), .delivery_timeout = options.timeout});
  if (!producer) return producer.error();
  return std::unique_ptr<KafkaPublisher>(new KafkaPublisher(*std::move(producer), options.topic));
}

void KafkaPublisher::Publish(Event event, Done done) {
  const std::string payload = EncodeEvent(event);
  producer_->Publish({.topic = topic_, .key = event.user_id, .payload = payload}, std::move(done));
}

}  // namespace weir::notify::kafka
