#include "drivers/kafka/client.h"

#include <librdkafka/rdkafka.h>

#include <array>
#include <initializer_list>
#include <utility>

#include "telemetry/log.h"

namespace weir::kafka {
namespace {

using telemetry::Level;

// syslog's levels: up to 3 is an error, 4 a warning.
void OnLog(const rd_kafka_t* /*client*/, int level, const char* facility, const char* text) {
  telemetry::Log(level <= 4 ? Level::kWarn : Level::kDebug, "kafka client",
                 {{"facility", std::string_view(facility)}, {"text", std::string_view(text)}});
}

// Single failures are already in the log; that no broker is left is not.
void OnError(rd_kafka_t* /*client*/, int error, const char* reason, void* /*opaque*/) {
  const auto code = static_cast<rd_kafka_resp_err_t>(error);
  const bool news = code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || code == RD_KAFKA_RESP_ERR__FATAL;
  telemetry::Log(
      news ? Level::kWarn : Level::kDebug, "kafka client",
      {{"error", std::string_view(rd_kafka_err2name(code))}, {"text", std::string_view(reason)}});
}

}  // namespace

void DeleteConf::operator()(rd_kafka_conf_s* conf) const noexcept { rd_kafka_conf_destroy(conf); }

Status Set(Conf& conf, const std::string& name, const std::string& value) {
  std::array<char, 512> why{};
  const auto result =
      rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), why.data(), why.size());
  if (result == RD_KAFKA_CONF_OK) return {};
  const bool secret = name.find("password") != name.npos || name.find("pem") != name.npos ||
                      name.find("secret") != name.npos || name.find("oauth") != name.npos;
  return Error{Code::kInvalidArgument, "Kafka property " + name + (secret ? ": refused" : ": ") +
                                           (secret ? "" : why.data())};
}

Result<Conf> MakeConf(const Url& url) {
  Conf conf(rd_kafka_conf_new());
  rd_kafka_conf_set_log_cb(conf.get(), OnLog);
  rd_kafka_conf_set_error_cb(conf.get(), OnError);
  const std::initializer_list<std::pair<const char*, std::string>> ours = {
      {"bootstrap.servers", url.brokers},
      {"client.id", "weir"},
      // A broker that is back is noticed within half a second.
      {"reconnect.backoff.ms", "50"},
      {"reconnect.backoff.max.ms", "500"},
      {"topic.metadata.refresh.interval.ms", "10000"},
      {"socket.nagle.disable", "true"},
      {"log.connection.close", "false"},
  };
  for (const auto& [name, value] : ours) {
    if (Status set = Set(conf, name, value); !set) return set.error();
  }
  for (const auto& [name, value] : url.properties) {
    if (Status set = Set(conf, name, value); !set) return set.error();
  }
  return conf;
}

}  // namespace weir::kafka
