#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "drivers/kafka/url.h"
#include "weir/result.h"

struct rd_kafka_s;

namespace weir::kafka {

struct ProducerOptions {
  Url url = {};
  /// From Publish to the confirmation. librdkafka checks once a second for late messages.
  std::chrono::milliseconds delivery_timeout{2000};
  /// Messages that may wait for their confirmation; more are refused.
  std::size_t max_queued = 50'000;
  std::size_t max_queued_kilobytes = 256 * 1024;
};

struct Outgoing {
  std::string_view topic;
  std::string_view key;
  std::string_view payload;
  std::vector<std::pair<std::string_view, std::string_view>> headers = {};
};

/// Publishes with confirmation: idempotent, acks=all, sent immediately. Messages published while
/// requests are under way go together in the next one, so batches grow with the load by
/// themselves.
///
/// Thread-safe: any thread may call Publish. Messages of one key keep their order.
class Producer {
 public:
  /// Called once, on the producer's thread (or inside Publish if refused); must not block. Ok:
  /// all in-sync replicas have it. kUnavailable: it is not on the topic and will not be; maybe
  /// the topic does not exist, or there is no right to write to it.
  /// kDeadlineExceeded: no confirmation arrived in time; it may or may not be there.
  /// kResourceExhausted: too many are waiting. kInvalidArgument: too large.
  using Done = std::function<void(Status)>;

  /// Does not wait for the broker.
  static Result<std::unique_ptr<Producer>> Open(ProducerOptions options);
  /// Waits for messages under way, at most the delivery timeout and two seconds.
  ~Producer();
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  /// Copies the texts.
  void Publish(const Outgoing& message, Done done);

  /// Messages not confirmed yet.
  std::size_t waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }

 private:
  struct Delete {
    void operator()(rd_kafka_s* client) const noexcept;
  };
  using Client = std::unique_ptr<rd_kafka_s, Delete>;

  explicit Producer(ProducerOptions options) : options_(std::move(options)) {}
  Result<Client> Connect();
  void PollLoop();
  void ReplaceClient();

  const ProducerOptions options_;
  std::shared_mutex client_mutex_;  // exclusive while a client that failed for good is replaced
  Client client_;
  std::atomic<std::size_t> waiting_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace weir::kafka
