#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "telemetry/log.h"

namespace weir {

/// Logs why a channel cannot be opened: each reason once, without alternating between reasons.
///
/// Thread safety: belongs to the channel's thread.
class ChannelTrouble {
 public:
  /// `quiet`: logs nothing at all.
  explicit ChannelTrouble(bool quiet) : quiet_(quiet) {}

  void Note(const std::string& error) {
    const auto now = std::chrono::steady_clock::now();
    if (quiet_ || error == last_ || now < quiet_until_) return;
    last_ = error;
    quiet_until_ = now + std::chrono::seconds(5);
    telemetry::Log(telemetry::Level::kError, "cannot open the channel between nodes",
                   {{"error", std::string_view(error)}});
  }
  void Clear() { last_.clear(); }

 private:
  const bool quiet_;
  std::string last_;
  std::chrono::steady_clock::time_point quiet_until_{};
};

}  // namespace weir
