#include "drivers/kafka/consumer.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "drivers/kafka/client.h"
#include "telemetry/log.h"

namespace weir::kafka {
namespace {

using telemetry::Level;
using telemetry::Log;

struct DeletePartitions {
  void operator()(rd_kafka_topic_partition_list_t* list) const noexcept {
    rd_kafka_topic_partition_list_destroy(list);
  }
};
using Partitions = std::unique_ptr<rd_kafka_topic_partition_list_t, DeletePartitions>;

Result<Conf> ConsumerConf(const ConsumerOptions& options) {
  auto made = MakeConf(options.url);
  if (!made) return made.error();
  Conf conf = *std::move(made);
  const std::initializer_list<std::pair<const char*, std::string>> ours = {
      {"group.id", options.group},
      {"enable.auto.commit", "false"},
      {"enable.auto.offset.store", "false"},
      {"auto.offset.reset", "earliest"},
      {"session.timeout.ms", std::to_string(options.session_timeout.count())},
      {"heartbeat.interval.ms", std::to_string(options.session_timeout.count() / 4)},
      {"max.poll.interval.ms", std::to_string(options.max_poll_interval.count())},
      {"partition.assignment.strategy", "range"},
      // Enough to be busy, little enough to be forgotten at a rebalance.
      {"queued.max.messages.kbytes", "16384"},
      {"fetch.wait.max.ms", "100"},
  };
  for (const auto& [name, value] : ours) {
    if (Status set = Set(conf, name, value); !set) return set.error();
  }
  return conf;
}

std::string Text(const void* bytes, std::size_t size) {
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

}  // namespace

void Consumer::DeleteClient::operator()(rd_kafka_s* client) const noexcept {
  rd_kafka_consumer_close(client);
  rd_kafka_destroy(client);
}

void Consumer::DeleteQueue::operator()(rd_kafka_queue_s* queue) const noexcept {
  rd_kafka_queue_destroy(queue);
}

Result<std::unique_ptr<Consumer>> Consumer::Open(const ConsumerOptions& options) {
  auto conf = ConsumerConf(options);
  if (!conf) return conf.error();
  std::array<char, 512> why{};
  std::unique_ptr<Consumer> consumer(new Consumer);
  consumer->topic_ = options.topic;
  consumer->client_.reset(rd_kafka_new(RD_KAFKA_CONSUMER, conf->get(), why.data(), why.size()));
  if (!consumer->client_) return Error{Code::kInvalidArgument, std::string("Kafka: ") + why.data()};
  static_cast<void>(conf->release());  // the client's now
  rd_kafka_poll_set_consumer(consumer->client_.get());
  consumer->queue_.reset(rd_kafka_queue_get_consumer(consumer->client_.get()));

  const Partitions topics(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(topics.get(), options.topic.c_str(), RD_KAFKA_PARTITION_UA);
  const rd_kafka_resp_err_t error = rd_kafka_subscribe(consumer->client_.get(), topics.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return Error{Code::kInvalidArgument,
                 std::string("Kafka: cannot subscribe: ") + rd_kafka_err2str(error)};
  }
  return consumer;
}

Consumer::~Consumer() {
  queue_.reset();
  client_.reset();
}

std::vector<Incoming> Consumer::Poll(std::size_t max, std::chrono::milliseconds wait) {
  std::vector<rd_kafka_message_t*> messages(max);
  const ssize_t count = rd_kafka_consume_batch_queue(queue_.get(), static_cast<int>(wait.count()),
                                                     messages.data(), messages.size());
  std::vector<Incoming> incoming;
  for (ssize_t i = 0; i < count; ++i) {
    rd_kafka_message_t* message = messages[static_cast<std::size_t>(i)];
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      incoming.push_back({.partition = message->partition,
                          .offset = message->offset,
                          .key = Text(message->key, message->key_len),
                          .payload = Text(message->payload, message->len)});
    } else {
      Log(Level::kWarn, "kafka consumer",
          {{"error", std::string_view(rd_kafka_err2name(message->err))},
           {"reason", std::string_view(rd_kafka_message_errstr(message))}});
    }
    rd_kafka_message_destroy(message);
  }
  return incoming;
}

Status Consumer::Commit(std::span<const Position> positions) {
  if (positions.empty()) return {};
  const Partitions list(rd_kafka_topic_partition_list_new(static_cast<int>(positions.size())));
  for (const Position& position : positions) {
    rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), position.partition)->offset =
        position.offset;
  }
  const rd_kafka_resp_err_t error = rd_kafka_commit(client_.get(), list.get(), 0);
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return {};
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
    case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST:
      return Error{Code::kFailedPrecondition, std::string("Kafka: ") + rd_kafka_err2str(error)};
    default:
      return Error{Code::kUnavailable, std::string("Kafka: ") + rd_kafka_err2str(error)};
  }
}

std::int64_t Consumer::Lag() const {
  rd_kafka_topic_partition_list_t* assigned = nullptr;
  if (rd_kafka_assignment(client_.get(), &assigned) != RD_KAFKA_RESP_ERR_NO_ERROR) return 0;
  const Partitions partitions(assigned);
  if (rd_kafka_position(client_.get(), assigned) != RD_KAFKA_RESP_ERR_NO_ERROR) return 0;
  std::int64_t lag = 0;
  for (int i = 0; i < assigned->cnt; ++i) {
    const rd_kafka_topic_partition_t& one = assigned->elems[i];
    std::int64_t low = 0;
    std::int64_t high = 0;
    const rd_kafka_resp_err_t known =
        rd_kafka_get_watermark_offsets(client_.get(), one.topic, one.partition, &low, &high);
    if (known != RD_KAFKA_RESP_ERR_NO_ERROR || one.offset < 0) continue;
    lag += std::max<std::int64_t>(high - one.offset, 0);
  }
  return lag;
}

}  // namespace weir::kafka
