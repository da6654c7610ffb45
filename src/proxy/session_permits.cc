// Permits that concurrency policies granted to a request are released when its response ends or
// either side disconnects. The end of a response waits until the store has confirmed it: a client
// that sends one request after the other would otherwise be refused because of its previous one.

#include <utility>

#include "proxy/later_check.h"
#include "proxy/session.h"

namespace weir::proxy {

void Session::HoldPermits() {
  if (check_.decision.lease == 0) return;
  std::string text;
  limiter::AppendPermits(text, check_);
  auto held = std::make_shared<LaterCheck>(check_.request);
  if (!limiter::ParsePermits(text, held->check.permits).ok()) return;
  held->check.op = store::Op::kRelease;
  held_ = std::move(held);
}

void Session::ReleasePermits() {
  if (held_ == nullptr) return;
  const std::shared_ptr<LaterCheck> held = std::move(held_);
  shared_.limiter->Decide({&held->check, 1}, [held] {});
}

/// Releases the permits and continues in phase `next` when that is done or takes too long.
void Session::ReleaseThen(Phase next) {
  after_release_ = next;
  phase_ = Phase::kReleasing;
  Touch(shared_.options.timeouts.release);
  const std::shared_ptr<LaterCheck> held = std::move(held_);
  shared_.limiter->Decide({&held->check, 1}, [held, self = Ptr(this)] { self->OnReleased(); });
}

void Session::OnReleased() {
  if (phase_ != Phase::kReleasing) return;
  phase_ = after_release_;
  Touch(shared_.options.timeouts.stall);
  OnWritable();
}

}  // namespace weir::proxy
