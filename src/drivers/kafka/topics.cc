#include "drivers/kafka/topics.h"

#include <librdkafka/rdkafka.h>

#include <array>
#include <memory>

#include "drivers/kafka/client.h"

namespace weir::kafka {
namespace {

template <auto Destroy>
struct Destroyer {
  template <typename T>
  void operator()(T* object) const noexcept {
    Destroy(object);
  }
};

using Client = std::unique_ptr<rd_kafka_t, Destroyer<rd_kafka_destroy>>;
using Queue = std::unique_ptr<rd_kafka_queue_t, Destroyer<rd_kafka_queue_destroy>>;
using Event = std::unique_ptr<rd_kafka_event_t, Destroyer<rd_kafka_event_destroy>>;
using Options = std::unique_ptr<rd_kafka_AdminOptions_t, Destroyer<rd_kafka_AdminOptions_destroy>>;
using NewTopic = std::unique_ptr<rd_kafka_NewTopic_t, Destroyer<rd_kafka_NewTopic_destroy>>;

constexpr int kDefaultReplication = -1;

Status Judge(rd_kafka_event_t* event) {
  if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return Error{Code::kUnavailable,
                 std::string("Kafka: cannot create topics: ") + rd_kafka_event_error_string(event)};
  }
  std::size_t count = 0;
  const auto* results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
  for (std::size_t i = 0; i < count; ++i) {
    const rd_kafka_resp_err_t error = rd_kafka_topic_result_error(results[i]);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
      continue;
    }
    return Error{Code::kFailedPrecondition, std::string("Kafka: cannot create topic ") +
                                                rd_kafka_topic_result_name(results[i]) + ": " +
                                                rd_kafka_err2str(error)};
  }
  return {};
}

}  // namespace

Status MakeTopics(const Url& url, const std::vector<Topic>& topics,
                  std::chrono::milliseconds timeout) {
  auto conf = MakeConf(url);
  if (!conf) return conf.error();
  std::array<char, 512> why{};
  const Client client(rd_kafka_new(RD_KAFKA_PRODUCER, conf->get(), why.data(), why.size()));
  if (!client) return Error{Code::kInvalidArgument, std::string("Kafka: ") + why.data()};
  static_cast<void>(conf->release());  // owned by the client now

  const int patience = static_cast<int>(timeout.count());
  const Options options(rd_kafka_AdminOptions_new(client.get(), RD_KAFKA_ADMIN_OP_CREATETOPICS));
  rd_kafka_AdminOptions_set_request_timeout(options.get(), patience, why.data(), why.size());
  rd_kafka_AdminOptions_set_operation_timeout(options.get(), patience, why.data(), why.size());
  std::vector<NewTopic> wanted;
  std::vector<rd_kafka_NewTopic_t*> pointers;
  for (const Topic& topic : topics) {
    wanted.emplace_back(rd_kafka_NewTopic_new(topic.name.c_str(), topic.partitions,
                                              kDefaultReplication, why.data(), why.size()));
    if (!wanted.back()) return Error{Code::kInvalidArgument, std::string("Kafka: ") + why.data()};
    pointers.push_back(wanted.back().get());
  }
  const Queue queue(rd_kafka_queue_new(client.get()));
  rd_kafka_CreateTopics(client.get(), pointers.data(), pointers.size(), options.get(), queue.get());
  const Event event(rd_kafka_queue_poll(queue.get(), patience + 1000));
  if (!event) return Error{Code::kDeadlineExceeded, "Kafka: no response about the topics"};
  return Judge(event.get());
}

}  // namespace weir::kafka
