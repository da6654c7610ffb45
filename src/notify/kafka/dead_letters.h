#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "drivers/kafka/producer.h"
#include "notify/sender.h"
#include "weir/result.h"

namespace weir::notify::kafka {

/// Stores dead letters on the topic `sms-outbound-dlq`: key and payload unchanged, with headers for
/// the reason and the origin: reason, source-topic, source-partition, source-offset. If a letter is
/// too large with them, its first 64 KiB, and its size as truncated-from.
///
/// Thread-safe.
class DeadLetterTopic {
 public:
  /// `source` is the topic that the messages come from.
  static Result<std::unique_ptr<DeadLetterTopic>> Open(weir::kafka::Url url, std::string source);

  /// Returns when the broker has confirmed all of them, or with the first error. After an error,
  /// some of them may have been stored.
  Status Keep(std::span<const DeadLetter> letters);

 private:
  DeadLetterTopic(std::unique_ptr<weir::kafka::Producer> producer, std::string source)
      : producer_(std::move(producer)), source_(std::move(source)) {}

  void Publish(const DeadLetter& letter, bool whole, weir::kafka::Producer::Done done);
  Status KeepPart(const DeadLetter& letter);

  std::unique_ptr<weir::kafka::Producer> producer_;
  std::string source_;
};

}  // namespace weir::notify::kafka
