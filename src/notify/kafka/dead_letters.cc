#include "notify/kafka/dead_letters.h"

#include <future>
#include <vector>

namespace weir::notify::kafka {

Result<std::unique_ptr<DeadLetterTopic>> DeadLetterTopic::Open(weir::kafka::Url url,
                                                               std::string source) {
  auto producer = weir::kafka::Producer::Open({.url = std::move(url)});
  if (!producer) return producer.error();
  return std::unique_ptr<DeadLetterTopic>(
      new DeadLetterTopic(*std::move(producer), std::move(source)));
}

Status DeadLetterTopic::Keep(std::span<const DeadLetter> letters) {
  std::vector<std::promise<Status>> told(letters.size());
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const weir::kafka::Incoming& message = letters[i].message;
    const std::string partition = std::to_string(message.partition);
    const std::string offset = std::to_string(message.offset);
    producer_->Publish({.topic = kDeadLetterTopic,
                        .key = message.key,
                        .payload = message.payload,
                        .headers = {{"reason", letters[i].reason},
                                    {"source-topic", source_},
                                    {"source-partition", partition},
                                    {"source-offset", offset}}},
                       [&one = told[i]](Status status) { one.set_value(std::move(status)); });
  }
  Status all;
  for (std::promise<Status>& one : told) {
    Status status = one.get_future().get();
    if (all && !status) all = std::move(status);
  }
  return all;
}

}  // namespace weir::notify::kafka
