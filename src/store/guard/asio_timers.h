#pragma once

#include <memory>

#include "base/timers.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace weir::store::guard {

/// The timers of a reactor.
///
/// Thread safety: belongs to the thread that runs `io`. Destroying it cancels all.
class AsioTimers final : public Timers {
 public:
  /// `io` must outlive it.
  explicit AsioTimers(boost::asio::io_context& io);
  ~AsioTimers() override;
  AsioTimers(const AsioTimers&) = delete;
  AsioTimers& operator=(const AsioTimers&) = delete;

  Id After(std::chrono::nanoseconds wait, std::function<void()> run) override;
  void Cancel(Id id) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace weir::store::guard
