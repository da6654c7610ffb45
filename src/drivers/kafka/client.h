#pragma once

// What producer, consumer and topic creation share: librdkafka's configuration and its log.

#include <memory>
#include <string>

#include "drivers/kafka/url.h"
#include "weir/result.h"

struct rd_kafka_s;
struct rd_kafka_conf_s;

namespace weir::kafka {

struct DeleteConf {
  void operator()(rd_kafka_conf_s* conf) const noexcept;
};
using Conf = std::unique_ptr<rd_kafka_conf_s, DeleteConf>;

/// Sets brokers, the URL's properties, quick reconnects, and forwards librdkafka's log and errors.
Result<Conf> MakeConf(const Url& url);
/// kInvalidArgument with librdkafka's message, which never contains a value that may be secret.
Status Set(Conf& conf, const std::string& name, const std::string& value);

}  // namespace weir::kafka
