#include "drivers/kafka/producer.h"

#include <librdkafka/rdkafka.h>

#include <array>
#include <initializer_list>
#include <mutex>

#include "drivers/kafka/client.h"
#include "telemetry/log.h"

// librdkafka has threads of its own that talk to the brokers. One thread of ours serves its
// callbacks: all confirmations since the last poll are reported in one go.

namespace weir::kafka {
namespace {

using telemetry::Level;
using telemetry::Log;

constexpr int kPollMillis = 100;

/// What a message carries through librdkafka.
struct Pending {
  Producer::Done done;
  std::atomic<std::size_t>* waiting;
};

Code CodeOf(rd_kafka_resp_err_t error, bool maybe_there) {
  switch (error) {
    case RD_KAFKA_RESP_ERR__QUEUE_FULL:
      return Code::kResourceExhausted;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
      return Code::kInvalidArgument;
    // The topic is at fault, not the message, and may be created or granted later.
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return Code::kUnavailable;
    default:
      return maybe_there ? Code::kDeadlineExceeded : Code::kUnavailable;
  }
}

void Tell(Pending* pending, Status status) {
  const std::unique_ptr<Pending> owned(pending);
  owned->waiting->fetch_sub(1, std::memory_order_relaxed);
  owned->done(std::move(status));
}

void OnDelivery(rd_kafka_t* /*client*/, const rd_kafka_message_t* message, void* /*opaque*/) {
  auto* pending = static_cast<Pending*>(message->_private);
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    Tell(pending, {});
    return;
  }
  const bool maybe_there = rd_kafka_message_status(message) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED;
  Tell(pending, Error{CodeOf(message->err, maybe_there),
                      std::string("Kafka: ") + rd_kafka_err2str(message->err)});
}

bool Failed(rd_kafka_t* client) {
  return rd_kafka_fatal_error(client, nullptr, 0) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

}  // namespace

void Producer::Delete::operator()(rd_kafka_s* client) const noexcept { rd_kafka_destroy(client); }

Result<Producer::Client> Producer::Connect() {
  auto made = MakeConf(options_.url);
  if (!made) return made.error();
  Conf conf = *std::move(made);
  const std::initializer_list<std::pair<const char*, std::string>> ours = {
      {"enable.idempotence", "true"},
      {"acks", "all"},
      {"message.timeout.ms", std::to_string(options_.delivery_timeout.count())},
      {"request.timeout.ms", std::to_string(options_.delivery_timeout.count())},
      {"queue.buffering.max.messages", std::to_string(options_.max_queued)},
      {"queue.buffering.max.kbytes", std::to_string(options_.max_queued_kilobytes)},
      {"retry.backoff.ms", "50"},
      // Keys go to partitions as with the Java client, so that producers of both kinds agree.
      {"partitioner", "murmur2_random"},
  };
  for (const auto& [name, value] : ours) {
    if (Status set = Set(conf, name, value); !set) return set.error();
  }
  bool linger = false;
  for (const auto& [name, value] : options_.url.properties) linger = linger || name == "linger.ms";
  if (!linger) {
    if (Status set = Set(conf, "linger.ms", "0"); !set) return set.error();
  }
  rd_kafka_conf_set_dr_msg_cb(conf.get(), OnDelivery);
  std::array<char, 512> why{};
  Client client(rd_kafka_new(RD_KAFKA_PRODUCER, conf.get(), why.data(), why.size()));
  if (!client) return Error{Code::kInvalidArgument, std::string("Kafka: ") + why.data()};
  static_cast<void>(conf.release());  // owned by the client now
  return client;
}

Result<std::unique_ptr<Producer>> Producer::Open(ProducerOptions options) {
  std::unique_ptr<Producer> producer(new Producer(std::move(options)));
  auto client = producer->Connect();
  if (!client) return client.error();
  producer->client_ = *std::move(client);
  producer->thread_ = std::thread([self = producer.get()] { self->PollLoop(); });
  return producer;
}

Producer::~Producer() {
  if (client_) {
    rd_kafka_flush(client_.get(), static_cast<int>(options_.delivery_timeout.count()) + 2000);
  }
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  if (!client_) return;
  // The rest is reported as not sent: no caller waits forever.
  rd_kafka_purge(client_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  rd_kafka_flush(client_.get(), 1000);
}

void Producer::PollLoop() {
  while (!stopping_) {
    // client_ changes only on this thread.
    rd_kafka_poll(client_.get(), kPollMillis);
    if (Failed(client_.get())) ReplaceClient();
  }
}

void Producer::ReplaceClient() {
  auto fresh = Connect();
  if (!fresh) {
    Log(Level::kError, "cannot recreate the Kafka producer",
        {{"reason", std::string_view(fresh.error().message)}});
    return;
  }
  Log(Level::kWarn, "Kafka producer failed permanently; recreating it");
  Client old = *std::move(fresh);
  {
    const std::unique_lock lock(client_mutex_);
    std::swap(old, client_);
  }
  // Without the lock: callbacks may publish again.
  rd_kafka_purge(old.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  rd_kafka_flush(old.get(), 1000);
}

void Producer::Publish(const Outgoing& message, Done done) {
  auto pending = std::make_unique<Pending>(Pending{std::move(done), &waiting_});
  rd_kafka_headers_t* headers = nullptr;
  if (!message.headers.empty()) {
    headers = rd_kafka_headers_new(message.headers.size());
    for (const auto& [name, value] : message.headers) {
      rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                          static_cast<ssize_t>(value.size()));
    }
  }
  const std::string topic(message.topic);
  waiting_.fetch_add(1, std::memory_order_relaxed);
  std::array<rd_kafka_vu_t, 6> fields{};
  fields[0].vtype = RD_KAFKA_VTYPE_TOPIC;
  fields[0].u.cstr = topic.c_str();
  fields[1].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  fields[1].u.i = RD_KAFKA_MSG_F_COPY;
  fields[2].vtype = RD_KAFKA_VTYPE_KEY;
  fields[2].u.mem = {const_cast<char*>(message.key.data()), message.key.size()};
  fields[3].vtype = RD_KAFKA_VTYPE_VALUE;
  fields[3].u.mem = {const_cast<char*>(message.payload.data()), message.payload.size()};
  fields[4].vtype = RD_KAFKA_VTYPE_OPAQUE;
  fields[4].u.ptr = pending.get();
  fields[5].vtype = RD_KAFKA_VTYPE_HEADERS;
  fields[5].u.headers = headers;
  rd_kafka_error_t* error = nullptr;
  {
    const std::shared_lock lock(client_mutex_);
    error = rd_kafka_produceva(client_.get(), fields.data(), headers == nullptr ? 5 : 6);
  }
  Pending* raw = pending.release();  // librdkafka's now, unless it refused
  if (error == nullptr) return;
  if (headers != nullptr) rd_kafka_headers_destroy(headers);
  const Error refused{CodeOf(rd_kafka_error_code(error), false),
                      std::string("Kafka: ") + rd_kafka_error_string(error)};
  rd_kafka_error_destroy(error);
  Tell(raw, refused);
}

}  // namespace weir::kafka
