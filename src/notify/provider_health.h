#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

namespace weir::notify {

/// Distinguishes whether deliveries on a channel fail because its provider is down, or one message
/// fails while others are delivered.
///
/// Thread-safe.
class ProviderHealth {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void Delivered(const std::string& channel, Time now);
  void Failed(const std::string& channel);
  /// Whether anything was delivered on the channel since this message was last tried or, if it
  /// was not, since `began`: then the message fails for its own reason.
  bool DeliveredOthers(const std::string& channel, const std::string& message, Time began) const;
  /// The message will be tried again later.
  void PutOff(const std::string& message, Time now);
  void Forget(const std::string& message);
  /// Whether to try a delivery now: while the provider is down, one per second.
  bool MayTry(const std::string& channel, Time now);

 private:
  struct Channel {
    Time delivered = {};
    Time probed = {};
    int failures = 0;  // in a row
  };
  // Messages name channels freely; beyond this many, channels share one entry.
  static constexpr std::size_t kMaxChannels = 1'000;
  // A message that is not remembered counts as tried for the first time, which is harmless.
  static constexpr std::size_t kMaxMessages = 100'000;
  Channel& Of(const std::string& channel);

  mutable std::mutex mutex_;
  std::map<std::string, Channel> channels_;
  std::unordered_map<std::string, Time> put_off_;  // by message
};

}  // namespace weir::notify
