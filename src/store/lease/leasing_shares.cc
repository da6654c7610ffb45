// The calls of LeasingStore that reserve shares of a rate and spend what flows in through them.

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <utility>

#include "store/lease/leasing_call.h"
#include "store/lease/leasing_store.h"

namespace weir::store::lease {

bool LeasingStore::MeetFromShare(Holding& holding, const store::Charge& charge, std::size_t place,
                                 bool alone, Nanos now) {
  RateShare& share = holding.share();
  if (!share.on()) return false;
  share.Note(now, charge.cost);
  if (alone) {
    if (!share.Take(now, charge.cost)) return false;
    metrics_->share_spent.Add(static_cast<std::uint64_t>(charge.cost));
    return true;
  }
  const std::uint64_t mark = share.Hold(now, charge.cost);
  if (mark == 0) return false;
  taken_.push_back({.position = static_cast<std::uint32_t>(place),
                    .count = charge.cost,
                    .until = 0,
                    .share = mark});
  return true;
}

/// A refusal by the store shows that a share is needed. A node that has one does not go to the
/// store with every check: the rest of the quota is small.
void LeasingStore::NoteRefusals(const Application& application, Nanos now) {
  for (std::size_t i = 0; i < application.terms.size(); ++i) {
    if (application.terms[i] == nullptr || application.decisions[i].allowed()) continue;
    const auto found = holdings_.find(application.charges[i].key);
    if (found == holdings_.end() || !found->second.share().on()) continue;
    Holding& holding = found->second;
    holding.share().Refused(now);
    if (holding.share().active(now)) holding.Refused(now + PauseFor(holding, now));
  }
}

void LeasingStore::AskForShare(Holdings::value_type& entry, Nanos now) {
  auto ask = std::make_unique<ShareAsk>(self_, entry.first, entry.second.terms());
  const Nanos half = ask->terms.rate.term / 2;
  const Nanos pause = std::uniform_int_distribution<Nanos>(half * 3 / 4, half)(random_);
  const RateShare::Question question = entry.second.share().Ask(now, pause);
  ask->sent = now;
  // In this order: what is released makes room for what is requested.
  for (const Reserved& ended : question.ended) {
    ask->Add(Op::kRelease, ask->units_key, 1, ask->units).lease = ended.name;
  }
  ask->Add(Op::kLease, ask->wants_key, question.want, ask->wants);
  ask->Add(Op::kLease, ask->units_key, question.keep, ask->units);
  ask->Add(Op::kLease, ask->units_key, question.more, ask->units);
  metrics_->share_asks.Add();
  ShareAsk* raw = ask.release();
  inner_->Apply(raw->applications, [raw] {
    const std::unique_ptr<ShareAsk> answered(raw);
    if (*answered->owner != nullptr) (*answered->owner)->OnShare(*answered);
  });
}

void LeasingStore::OnShare(ShareAsk& ask) {
  const Nanos now = clock_.Now();
  const auto found = holdings_.find(ask.key);
  const bool known = found != holdings_.end() && found->second.terms() == ask.terms;
  // The last three: the wants, and the two grants.
  const std::span<Application> answers = std::span(ask.applications).last(3);
  RateShare::Answer answer{.reserved = {}, .sent = ask.sent, .now = now};
  for (std::size_t i = 0; i < answer.reserved.size(); ++i) {
    const Application& units = answers[i + 1];
    if (!units.status.ok()) continue;
    answer.reserved[i] = {.units = units.granted, .name = units.decisions.front().lease};
    const bool unused = !known || draining_;
    if (unused && units.granted > 0) SendRelease(ask.key, ask.terms, answer.reserved[i].name);
  }
  if (!known || draining_) return;
  if (!answers.front().status.ok()) return found->second.share().Failed(now);
  const Decision& counted = answers.front().decisions.front();
  answer.wants = counted.limit - counted.remaining;
  found->second.share().OnAnswer(answer, flaws_);
}

std::int64_t LeasingStore::CountUnits() const {
  const Nanos now = clock_.Now();
  std::int64_t units = 0;
  for (const auto& [key, holding] : holdings_) units += holding.share().UnitsAt(now);
  return units;
}

void LeasingStore::ReleaseShares(std::string_view key, Holding& holding) {
  for (const Reserved& reserved : holding.share().Surrender()) {
    SendRelease(key, holding.terms(), reserved.name);
  }
}

void LeasingStore::SendRelease(std::string_view key, const algorithm::LeaseTerms& terms,
                               std::int64_t name) {
  const std::string units_key = std::string(key) + std::string(kUnitsSuffix);
  const algorithm::LeaseTerms units{UnitsQuota(terms.rate)};
  auto ask = std::make_unique<Ask>(self_, units_key, units, Op::kRelease, 1);
  ask->application.lease = name;
  Send(std::move(ask));
}

/// A node that uses its share requests permits of the rest about twice per term of the share.
Nanos LeasingStore::PauseFor(Holding& holding, Nanos now) {
  const algorithm::LeaseTerms& terms = holding.terms();
  return Pause(holding.share().active(now) ? terms.rate.term / 2 : terms.term);
}

}  // namespace weir::store::lease
