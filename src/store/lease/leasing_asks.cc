// The calls of LeasingStore that take permits of time-window quotas in advance and return them.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/lease/leasing_call.h"
#include "store/lease/leasing_store.h"

namespace weir::store::lease {

/// Requests more of a key once the check that noticed the need has been answered: the check need
/// not wait until a call to the store is sent, which takes an SQL store longer than the check.
void LeasingStore::AskSoon(std::string_view key) {
  due_.emplace_back(key);
  if (asking_soon_ != 0) return;
  asking_soon_ = timers_->After(std::chrono::nanoseconds(0), [this] {
    asking_soon_ = 0;
    AskNow();
  });
}

void LeasingStore::AskNow() {
  const std::shared_ptr<LeasingStore*> self = self_;
  for (const std::string& key : std::exchange(due_, {})) {
    // Answers may come immediately, and their callbacks may do anything, even destroy this.
    if (*self != nullptr) AskNow(key);
  }
}

/// If the key is still watched, and still lacks permits.
void LeasingStore::AskNow(std::string_view key) {
  const Nanos now = clock_.Now();
  if (const auto found = stocks_.find(key); found != stocks_.end()) {
    found->second.ClearDue();
    if (found->second.ShouldAsk(now)) AskForPermits(*found, now);
    return;
  }
  const auto found = holdings_.find(key);
  if (found == holdings_.end()) return EndWaits(key, false);
  Holding& holding = found->second;
  const bool asks = holding.TakeDue() && holding.ShouldAsk(now);
  if (holding.TakeShareDue() && holding.share().ShouldAsk(now)) {
    // No checks wait for permits of a key with shares.
    if (asks) AskAhead(*found, now);
    return AskForShare(*found, now);
  }
  if (asks) return AskAhead(*found, now);
  if (!holding.asking()) EndWaits(key, false);
}

void LeasingStore::AskAhead(Holdings::value_type& entry, Nanos now, Nanos rest) {
  const std::int64_t want = entry.second.Want(now, rest);
  auto ask = std::make_unique<Ask>(self_, entry.first, entry.second.terms(), Op::kLease, want);
  ask->sent = now;
  entry.second.Asked(want);
  metrics_->asks.Add();
  Send(std::move(ask));
}

void LeasingStore::Send(std::unique_ptr<Ask> ask) {
  if (inner_ == nullptr) return;  // this is being destroyed
  Ask* raw = ask.release();
  inner_->Apply({&raw->application, 1}, [raw] {
    const std::unique_ptr<Ask> answered(raw);
    const bool granted = answered->application.op == Op::kLease;
    if (granted && *answered->owner != nullptr) (*answered->owner)->OnGrant(*answered);
  });
}

void LeasingStore::OnGrant(Ask& ask) {
  const Nanos now = clock_.Now();
  const auto found = holdings_.find(ask.key);
  const bool known = found != holdings_.end() && found->second.terms() == ask.terms;
  const Application& answer = ask.application;
  if (!answer.status.ok()) {
    if (known) found->second.Failed(now);
    return EndWaits(ask.key, false);
  }
  metrics_->granted.Add(static_cast<std::uint64_t>(answer.granted));
  if (!known || draining_) {
    SendReturn(ask.key, ask.terms, answer.at, answer.granted);
    return EndWaits(ask.key, false);
  }
  const std::int64_t held = found->second.held();
  const bool kept = found->second.OnGrant({.grant = {answer.granted, answer.at, ask.decision},
                                           .id = ++grants_,
                                           .want = ask.charge.cost,
                                           .sent = ask.sent,
                                           .now = now,
                                           .pause = PauseFor(found->second, now),
                                           .patient = found->second.share().active(now)},
                                          flaws_);
  if (!kept) {
    SendReturn(ask.key, ask.terms, answer.at, answer.granted);
    return EndWaits(ask.key, false);
  }
  const std::int64_t got = found->second.held() - held;
  CountHeld(got);
  metrics_->lost.Add(static_cast<std::uint64_t>(std::max<std::int64_t>(answer.granted - got, 0)));
  EndWaits(ask.key, answer.granted == 0 && !ask.decision.allowed());
}

void LeasingStore::GiveBack(std::string_view key, Holding& holding, Nanos now) {
  CountHeld(-holding.held());
  for (const Lot& lot : holding.Surrender()) {
    if (lot.until >= now) SendReturn(key, holding.terms(), lot.at, lot.left);
  }
}

/// Sent once and never again: a return that is done twice would free what others were charged.
void LeasingStore::SendReturn(std::string_view key, const algorithm::LeaseTerms& terms, Nanos at,
                              std::int64_t count) {
  if (count <= 0) return;
  auto ask = std::make_unique<Ask>(self_, key, terms, Op::kReturn, count);
  ask->application.lease = at;
  metrics_->returned.Add(static_cast<std::uint64_t>(count));
  Send(std::move(ask));
}

}  // namespace weir::store::lease
