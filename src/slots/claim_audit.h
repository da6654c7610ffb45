#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "slots/slot_store.h"
#include "weir/clock.h"

namespace weir::slots {

/// Copies notes of claims that were made directly on the store (`weir dispatch --store`) to an
/// audit log. A note is deleted only once it is in the log, so none is lost; if the process dies in
/// between, it is logged twice.
///
/// Thread safety: call OnSecond from one thread, and Close from one thread.
class ClaimAudit {
 public:
  /// Reports whether the note was written; called once, on any thread.
  using Written = std::function<void(bool)>;
  using Write = std::function<void(const ClaimNote&, Written)>;

  /// `store` must live until Close.
  ClaimAudit(SlotStore& store, Write write);
  ~ClaimAudit() { Close(); }
  ClaimAudit(const ClaimAudit&) = delete;
  ClaimAudit& operator=(const ClaimAudit&) = delete;

  /// Call it every second; `now` is the time since the epoch.
  void OnSecond(Nanos now);
  /// Stops calling the store.
  void Close();

 private:
  struct State;
  struct Round;
  static void Ended(const std::shared_ptr<State>& state, const std::shared_ptr<Round>& round);

  SlotStore& store_;
  Nanos next_ = 0;
  std::shared_ptr<State> state_;
};

}  // namespace weir::slots
