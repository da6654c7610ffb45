#include "drivers/kafka/consumer.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <memory>
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
      // Enough to stay busy, few enough to be discarded at a rebalance.
      {"queued.max.messages.kbytes", "16384"},
      {"fetch.wait.max.ms", "100"},
  };
  for (const auto& [name, value] : ours) {
    if (Status set = Set(conf, name, value); !set) return set.error();
  }
  return conf;
}

// A broker that stands still answers nothing, and librdkafka would wait for it for as long.
constexpr int kCommitMillis = 5'000;
constexpr std::chrono::seconds kCloseTimeout{5};

struct DeleteQueue {
  void operator()(rd_kafka_queue_t* queue) const noexcept { rd_kafka_queue_destroy(queue); }
};
struct DeleteEvent {
  void operator()(rd_kafka_event_t* event) const noexcept { rd_kafka_event_destroy(event); }
};

/// As rd_kafka_commit, but not for longer than kCommitMillis.
rd_kafka_resp_err_t CommitSoon(rd_kafka_t* client, const rd_kafka_topic_partition_list_t* offsets) {
  const std::unique_ptr<rd_kafka_queue_t, DeleteQueue> answers(rd_kafka_queue_new(client));
  const rd_kafka_resp_err_t asked =
      rd_kafka_commit_queue(client, offsets, answers.get(), nullptr, nullptr);
  if (asked != RD_KAFKA_RESP_ERR_NO_ERROR) return asked;
  const std::unique_ptr<rd_kafka_event_t, DeleteEvent> answer(
      rd_kafka_queue_poll(answers.get(), kCommitMillis));
  return answer ? rd_kafka_event_error(answer.get()) : RD_KAFKA_RESP_ERR__TIMED_OUT;
}

struct DeleteMessage {
  void operator()(rd_kafka_message_t* message) const noexcept { rd_kafka_message_destroy(message); }
};
using Message = std::unique_ptr<rd_kafka_message_t, DeleteMessage>;

std::string Text(const void* bytes, std::size_t size) {
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

}  // namespace

// As rd_kafka_consumer_close, but not for longer than kCloseTimeout. Without a goodbye the group
// misses it when its session has timed out.
//
// The queue also receives messages that were fetched and not polled: rd_kafka_queue_poll_callback
// would abort at the first of them. Taken as events they are dropped, but then so is the rebalance,
// without a callback.
void Consumer::DeleteClient::operator()(rd_kafka_s* client) const noexcept {
  std::unique_ptr<rd_kafka_queue_t, DeleteQueue> events(rd_kafka_queue_new(client));
  if (rd_kafka_error_t* failed = rd_kafka_consumer_close_queue(client, events.get())) {
    rd_kafka_error_destroy(failed);
  } else {
    const auto end = std::chrono::steady_clock::now() + kCloseTimeout;
    while (rd_kafka_consumer_closed(client) == 0 && std::chrono::steady_clock::now() < end) {
      const std::unique_ptr<rd_kafka_event_t, DeleteEvent> event(
          rd_kafka_queue_poll(events.get(), 50));
      if (rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_REBALANCE) {
        rd_kafka_assign(client, nullptr);
      }
    }
  }
  events.reset();  // what is still in it refers to the client
  rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

Result<std::unique_ptr<Consumer>> Consumer::Open(const ConsumerOptions& options) {
  auto conf = ConsumerConf(options);
  if (!conf) return conf.error();
  std::array<char, 512> why{};
  std::unique_ptr<Consumer> consumer(new Consumer);
  consumer->topic_ = options.topic;
  rd_kafka_conf_set_opaque(conf->get(), consumer.get());
  rd_kafka_conf_set_rebalance_cb(
      conf->get(),
      [](rd_kafka_t* client, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* partitions,
         void* opaque) { OnRebalance(client, what, partitions, opaque); });
  consumer->client_.reset(rd_kafka_new(RD_KAFKA_CONSUMER, conf->get(), why.data(), why.size()));
  if (!consumer->client_) return Error{Code::kInvalidArgument, std::string("Kafka: ") + why.data()};
  static_cast<void>(conf->release());  // owned by the client now
  rd_kafka_poll_set_consumer(consumer->client_.get());

  const Partitions topics(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(topics.get(), options.topic.c_str(), RD_KAFKA_PARTITION_UA);
  const rd_kafka_resp_err_t error = rd_kafka_subscribe(consumer->client_.get(), topics.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return Error{Code::kInvalidArgument,
                 std::string("Kafka: cannot subscribe: ") + rd_kafka_err2str(error)};
  }
  return consumer;
}

Consumer::~Consumer() = default;

// Called by Poll and when the consumer closes. Until partitions are released here, the group
// assigns them to no one, so polled messages are handled and committed before another member reads.
void Consumer::OnRebalance(rd_kafka_s* client, int what,
                           rd_kafka_topic_partition_list_s* partitions, void* consumer) {
  const bool given = what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
  if (!given) static_cast<Consumer*>(consumer)->revoked_ = true;
  rd_kafka_assign(client, given ? partitions : nullptr);
}

std::vector<Incoming> Consumer::Poll(std::size_t max, std::chrono::milliseconds wait) {
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + wait;
  std::vector<Incoming> incoming;
  while (incoming.size() < max) {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(end - steady_clock::now());
    revoked_ = false;
    const Message message(rd_kafka_consumer_poll(
        client_.get(), static_cast<int>(std::max(rest, std::chrono::milliseconds(0)).count())));
    if (revoked_) incoming.clear();  // the new owners of the partitions receive them again
    if (!message) break;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      incoming.push_back({.partition = message->partition,
                          .offset = message->offset,
                          .key = Text(message->key, message->key_len),
                          .payload = Text(message->payload, message->len)});
    } else {
      Log(Level::kWarn, "kafka consumer",
          {{"error", std::string_view(rd_kafka_err2name(message->err))},
           {"reason", std::string_view(rd_kafka_message_errstr(message.get()))}});
    }
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
  const rd_kafka_resp_err_t error = CommitSoon(client_.get(), list.get());
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
