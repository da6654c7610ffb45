#include "notify/kafka/dead_letters.h"

#include <future>
#include <vector>

namespace weir::notify::kafka {
namespace {

constexpr std::size_t kKeptOfTooLarge = std::size_t{64} * 1024;

}  // namespace

Result<std::unique_ptr<DeadLetterTopic>> DeadLetterTopic::Open(weir::kafka::Url url,
                                                               std::string source) {
  auto producer = weir::kafka::Producer::Open({.url = std::move(url)});
  if (!producer) return producer.error();
  return std::unique_ptr<DeadLetterTopic>(
      new DeadLetterTopic(*std::move(producer), std::move(source)));
}

void DeadLetterTopic::Publish(const DeadLetter& letter, bool whole,
                              weir::kafka::Producer::Done done) {
  const weir::kafka::Incoming& message = letter.message;
  const std::string partition = std::to_string(message.partition);
  const std::string offset = std::to_string(message.offset);
  const std::string bytes = std::to_string(message.payload.size());
  weir::kafka::Outgoing kept{.topic = kDeadLetterTopic,
                             .key = message.key,
                             .payload = message.payload,
                             .headers = {{"reason", letter.reason},
                                         {"source-topic", source_},
                                         {"source-partition", partition},
                                         {"source-offset", offset}}};
  if (!whole) {
    kept.key = kept.key.substr(0, kMaxUserIdBytes);
    kept.payload = kept.payload.substr(0, kKeptOfTooLarge);
    kept.headers.emplace_back("truncated-from", bytes);
  }
  producer_->Publish(kept, std::move(done));
}

Status DeadLetterTopic::KeepPart(const DeadLetter& letter) {
  std::promise<Status> told;
  Publish(letter, false, [&told](Status status) { told.set_value(std::move(status)); });
  return told.get_future().get();
}

Status DeadLetterTopic::Keep(std::span<const DeadLetter> letters) {
  std::vector<std::promise<Status>> told(letters.size());
  for (std::size_t i = 0; i < letters.size(); ++i) {
    Publish(letters[i], true,
            [&one = told[i]](Status status) { one.set_value(std::move(status)); });
  }
  Status all;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    Status status = told[i].get_future().get();
    // With its headers it is larger than the topic allows. Retrying would block its partition.
    if (!status && status.error().code == Code::kInvalidArgument) status = KeepPart(letters[i]);
    if (all && !status) all = std::move(status);
  }
  return all;
}

}  // namespace weir::notify::kafka
