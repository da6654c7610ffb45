#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

#include "telemetry/log.h"

namespace weir {

/// Logs why a channel cannot be opened: each reason once, without alternating between reasons. Two
/// channels to one server, which are down together, have one line.
///
/// Thread safety: belongs to the channel's thread.
class ChannelTrouble {
 public:
  /// `quiet`: logs nothing at all.
  explicit ChannelTrouble(bool quiet) : quiet_(quiet) {}

  void Note(const std::string& error) {
    const auto now = Clock::now();
    if (quiet_ || error == last_ || now < quiet_until_) return;
    last_ = error;
    quiet_until_ = now + kPause;
    if (WasSaid(error, now)) return;
    telemetry::Log(telemetry::Level::kError, "cannot open the channel between nodes",
                   {{"error", std::string_view(error)}});
  }
  void Clear() { last_.clear(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPause{5};

  /// By another channel just now; else this one says it.
  static bool WasSaid(const std::string& error, Clock::time_point now) {
    static std::mutex mutex;
    static std::string last;
    static Clock::time_point until;
    const std::lock_guard lock(mutex);
    if (error == last && now < until) return true;
    last = error;
    until = now + kPause;
    return false;
  }

  const bool quiet_;
  std::string last_;
  Clock::time_point quiet_until_{};
};

}  // namespace weir
