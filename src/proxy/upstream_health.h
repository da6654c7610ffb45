#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "weir/clock.h"

namespace weir::proxy {

/// Whether an upstream answers, and what is logged about it: one warning when requests to it
/// begin to fail, another each minute while they do, and a line when it answers again.
///
/// Thread-safe: the reactors share it.
class UpstreamHealth {
 public:
  /// `address` is what the log and the metrics call it; `clock` must outlive this.
  explicit UpstreamHealth(std::string address, const Clock& clock = SystemClock::Get())
      : address_(std::move(address)), clock_(clock) {}

  /// It could not be reached, or gave no usable response.
  void NoteFailure(std::string_view reason);
  /// It has begun a response. Costs a read as long as there was no failure.
  void NoteResponse() {
    if (!up()) Recover();
  }

  const std::string& address() const noexcept { return address_; }
  /// False if the last request to it failed.
  bool up() const noexcept { return up_.load(std::memory_order_relaxed); }

 private:
  void Recover();

  const std::string address_;
  const Clock& clock_;
  std::atomic<bool> up_{true};
  std::mutex mutex_;
  bool warned_ = false;  // since it last answered
  Nanos warned_at_ = 0;
};

}  // namespace weir::proxy
