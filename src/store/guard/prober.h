#pragma once

#include <memory>

#include "store/guard/guarded_store.h"

namespace weir::store::guard {

/// Watches the store when no checks do: probes each part whose breaker is open, and asks once a
/// second while no check goes to it, so that operators see a dead store before clients do.
///
/// Thread safety: belongs to the thread that runs `io`, as the store it probes through.
class Prober {
 public:
  /// `guard` and `store` must outlive it. Starts immediately.
  Prober(boost::asio::io_context& io, Guard& guard, GuardedStore& store);
  /// With timers other than a reactor's.
  Prober(std::unique_ptr<Timers> timers, Guard& guard, GuardedStore& store);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace weir::store::guard
