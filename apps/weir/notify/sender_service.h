#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "drivers/kafka/consumer.h"
#include "notify/delivered_ids.h"
#include "notify/kafka/dead_letters.h"
#include "notify/provider.h"
#include "notify/sender.h"
#include "weir/result.h"

namespace weir::app {

/// Everything `weir sender` can be told.
struct SenderSettings {
  std::string broker = "kafka://127.0.0.1:9092";  ///< secret: may hold a password
  std::string group = "weir-sender";
  std::string topic = "sms-outbound";
  std::string data = "./weir-sender";
  std::string webhook = {};  ///< empty: the console
  std::string token = {};    ///< secret
  std::size_t workers = 8;
  int attempts = 5;
  std::int64_t remembered = 1'000'000;
  std::chrono::milliseconds timeout{5000};
};

/// A running sender.
///
/// Thread safety: for the thread that made it.
class SenderService {
 public:
  static Result<std::unique_ptr<SenderService>> Open(const SenderSettings& settings,
                                                     std::stop_token stop);

  /// Consumes until stop is asked for; then finishes what is in hand, commits and leaves the group.
  void Run();

 private:
  SenderService() = default;
  void Commit(std::span<const kafka::Position> positions);
  void Beat();

  std::stop_token stop_;
  std::string heartbeat_;
  std::chrono::steady_clock::time_point last_beat_;
  std::size_t batch_ = 0;
  std::unique_ptr<notify::Provider> provider_;
  std::unique_ptr<notify::DeliveredIds> delivered_;
  std::unique_ptr<notify::kafka::DeadLetterTopic> dead_letters_;
  std::unique_ptr<notify::Sender> sender_;
  std::unique_ptr<kafka::Consumer> consumer_;
};

}  // namespace weir::app
