// What concurrency policies have granted to a request is given back when its response has ended or
// either side is gone. The request's head has left the buffer by then, so who asked is kept here.

#include <utility>

#include "proxy/session.h"

namespace weir::proxy {

/// A release in waiting. Shared with the limiter's callback, since the session goes on, or ends,
/// while a distant store is asked.
struct HeldPermits {
  limiter::Check check;
  std::string values;
  policy::Entry entries[5];
  policy::Descriptor descriptor;
};

void Session::HoldPermits() {
  if (check_.decision.lease == 0) return;
  std::string text;
  limiter::AppendPermits(text, check_);
  auto held = std::make_shared<HeldPermits>();
  if (!limiter::ParsePermits(text, held->check.permits).ok()) return;
  for (const policy::Entry& entry : descriptor_) held->values += entry.value;
  std::size_t at = 0;
  for (std::size_t i = 0; i < descriptor_.size(); ++i) {
    const std::size_t size = descriptor_[i].value.size();
    held->entries[i] = {descriptor_[i].key, std::string_view(held->values).substr(at, size)};
    at += size;
  }
  held->descriptor = {held->entries, descriptor_.size()};
  held->check.op = store::Op::kRelease;
  held->check.request.domain = shared_.options.domain;
  held->check.request.descriptors = {&held->descriptor, 1};
  held_ = std::move(held);
}

void Session::ReleasePermits() {
  if (held_ == nullptr) return;
  const std::shared_ptr<HeldPermits> held = std::move(held_);
  shared_.limiter->Decide({&held->check, 1}, [held] {});
}

}  // namespace weir::proxy
