#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "drivers/kafka/url.h"
#include "weir/result.h"

struct rd_kafka_s;
struct rd_kafka_topic_partition_list_s;

namespace weir::kafka {

struct ConsumerOptions {
  Url url = {};
  std::string group = {};
  std::string topic = {};
  /// A consumer that does not call Poll for this long loses its partitions to the group.
  std::chrono::milliseconds max_poll_interval{std::chrono::minutes(5)};
  std::chrono::milliseconds session_timeout{10'000};
};

struct Incoming {
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::string key = {};
  std::string payload = {};
};

/// How far a partition has been handled: the offset after the last message.
struct Position {
  std::int32_t partition = 0;
  std::int64_t offset = 0;
};

/// One member of a consumer group. Offsets are committed only by Commit, so a message that
/// was not handled is delivered again. A group without commits starts with the
/// oldest. A member that joins gets none of its partitions before the next Poll, so what was
/// polled before can be handled and committed first.
///
/// Not thread-safe: one thread at a time.
class Consumer {
 public:
  /// Does not wait for the broker; a topic that does not exist yet is found within ten seconds of
  /// its creation.
  static Result<std::unique_ptr<Consumer>> Open(const ConsumerOptions& options);
  /// Leaves the group, so that another member takes over immediately.
  ~Consumer();
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  /// The messages that arrive within `wait`, `max` at most, in the order of each partition. If the
  /// broker is in trouble, logs that and waits.
  std::vector<Incoming> Poll(std::size_t max, std::chrono::milliseconds wait);

  /// Returns when the broker has confirmed. kFailedPrecondition: the partitions belong to another
  /// member now, which will receive the messages again.
  Status Commit(std::span<const Position> positions);

  /// Messages of this member's partitions that Poll has not returned yet, as far as the broker has
  /// reported. Does not wait.
  std::int64_t Lag() const;

 private:
  struct DeleteClient {
    void operator()(rd_kafka_s* client) const noexcept;
  };

  Consumer() = default;
  static void OnRebalance(rd_kafka_s* client, int what, rd_kafka_topic_partition_list_s* partitions,
                          void* consumer);

  std::string topic_;
  bool revoked_ = false;  // partitions, during the running call of Poll
  // Destroyed before the rest: closing calls OnRebalance.
  std::unique_ptr<rd_kafka_s, DeleteClient> client_;
};

}  // namespace weir::kafka
