#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "drivers/kafka/consumer.h"
#include "metrics_door.h"
#include "notify/delivered_ids.h"
#include "notify/delivery_stats.h"
#include "notify/kafka/dead_letters.h"
#include "notify/kafka/publisher.h"
#include "notify/postgres/ledger.h"
#include "notify/provider.h"
#include "notify/sender.h"
#include "telemetry/metrics.h"
#include "weir/result.h"

namespace weir::app {

/// The settings of `weir sender`.
struct SenderSettings {
  std::string broker = "kafka://127.0.0.1:9092";  ///< secret: may hold a password
  std::string group = "weir-sender";
  std::string topic = "sms-outbound";
  std::string data = "./weir-sender";
  std::string store = {};                   ///< where to report; secret; empty: nowhere
  std::vector<std::string> providers = {};  ///< [CHANNEL=]URL; secret; none: the console
  std::string webhook = {};                 ///< like a provider for all channels
  std::string token = {};                   ///< secret
  std::string metrics = {};                 ///< HOST:PORT of GET /metrics; empty: none
  std::size_t workers = 8;
  int attempts = 5;
  std::int64_t remembered = 1'000'000;
  std::chrono::milliseconds timeout{5000};
};

/// A running sender.
///
/// Thread safety: for the thread that created it.
class SenderService {
 public:
  static Result<std::unique_ptr<SenderService>> Open(const SenderSettings& settings,
                                                     const std::stop_token& stop);

  /// Consumes until a stop is requested; then finishes current work, commits and leaves the group.
  void Run();

 private:
  SenderService() = default;
  Status OpenParts(const SenderSettings& settings, const std::stop_token& stop);
  Status OpenKafka(const SenderSettings& settings, const notify::RetryPolicy& retry);
  Status OpenMetrics(const std::string& address);
  void Commit(std::span<const kafka::Position> positions);
  void Beat();
  void Release();
  /// Reports to the gateway's database what was done so far, every few seconds.
  void ReportFigures(const std::stop_token& ended);

  std::stop_token stop_;
  std::string heartbeat_;
  std::mutex beating_;
  std::chrono::steady_clock::time_point last_beat_;
  std::size_t batch_ = 0;
  std::chrono::steady_clock::time_point last_release_;
  notify::DeliveryStats stats_;
  std::atomic<std::int64_t> lag_{0};
  std::unique_ptr<notify::Provider> provider_;
  std::unique_ptr<notify::kafka::KafkaPublisher> publisher_;
  std::unique_ptr<notify::postgres::PostgresLedger> log_;
  std::unique_ptr<notify::DeliveredIds> delivered_;
  std::unique_ptr<notify::kafka::DeadLetterTopic> dead_letters_;
  std::unique_ptr<notify::Sender> sender_;
  std::unique_ptr<kafka::Consumer> consumer_;
  telemetry::Registry registry_;
  std::unique_ptr<MetricsDoor> metrics_;
  std::string name_;  // of this process, for its figures
  std::jthread figures_;
};

}  // namespace weir::app
