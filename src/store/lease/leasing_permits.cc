// The calls of LeasingStore that keep permits of concurrency quotas in stock and hand them out.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/lease/leasing_store.h"
#include "store/lease/permit_stock.h"
#include "store/store.h"

namespace weir::store::lease {

/// One key's request for permits, or the release of some; each permit is an application. Owns all
/// its memory.
struct LeasingStore::PermitAsk {
  std::shared_ptr<LeasingStore*> owner;
  std::string key;
  algorithm::LeaseTerms terms;
  store::Charge charge;
  std::vector<Decision> decisions;
  std::vector<Application> applications;
  Nanos sent = 0;

  PermitAsk(std::shared_ptr<LeasingStore*> store, std::string_view text,
            const algorithm::LeaseTerms& its_terms, Op op, std::size_t count)
      : owner(std::move(store)),
        key(text),
        terms(its_terms),
        charge{key, 1, &terms.quota},
        decisions(count),
        applications(count) {
    for (std::size_t i = 0; i < count; ++i) {
      applications[i].op = op;
      applications[i].charges = {&charge, 1};
      applications[i].decisions = {&decisions[i], 1};
    }
  }
  PermitAsk(const PermitAsk&) = delete;
  PermitAsk& operator=(const PermitAsk&) = delete;
  ~PermitAsk() = default;
};

/// Meets one charge of a concurrency quota with a permit in stock.
bool LeasingStore::HandOut(Application& application, std::size_t place, Nanos now) {
  const store::Charge& charge = application.charges[place];
  if (charge.cost != 1) return false;  // a check gets one name, whatever it costs
  Stocks::value_type* entry = WatchStock(charge, *application.terms[place], now);
  if (entry == nullptr) return false;
  PermitStock& stock = entry->second;
  stock.Note(now);
  // If the store must be asked as well, the permit must last until it has answered.
  const Nanos rest = application.charges.size() == 1 ? 0 : stock.terms().term / 4;
  const std::optional<StockedPermit> permit = stock.Take(now, rest);
  if (permit) {
    CountHeld(-1);
    application.decisions[place] = stock.Estimate(*permit);
    taken_.push_back({.position = static_cast<std::uint32_t>(place),
                      .lot = stock.id(),
                      .count = 1,
                      .until = permit->until,
                      .permit = permit->name});
  }
  if (stock.ShouldAsk(now) && stock.MarkDue()) AskSoon(entry->first);
  return permit.has_value();
}

LeasingStore::Stocks::value_type* LeasingStore::WatchStock(const store::Charge& charge,
                                                           const algorithm::LeaseTerms& terms,
                                                           Nanos now) {
  if (draining_) return nullptr;
  auto found = stocks_.find(charge.key);
  if (found == stocks_.end()) {
    if (Full()) return nullptr;
    found = stocks_.emplace(std::string(charge.key), PermitStock(terms, now, ++grants_)).first;
    SetTick();
  } else if (found->second.terms() != terms) {
    GiveBackPermits(*found);
    found->second = PermitStock(terms, now, ++grants_);
  }
  return &*found;
}

void LeasingStore::AskForPermits(Stocks::value_type& entry, Nanos now) {
  PermitStock& stock = entry.second;
  const std::int64_t want = stock.Want();
  auto ask = std::make_unique<PermitAsk>(self_, entry.first, stock.terms(), Op::kLease,
                                         static_cast<std::size_t>(want));
  ask->sent = now;
  stock.Asked(want);
  metrics_->asks.Add();
  PermitAsk* raw = ask.release();
  inner_->Apply(raw->applications, [raw] {
    const std::unique_ptr<PermitAsk> answered(raw);
    if (*answered->owner != nullptr) (*answered->owner)->OnPermits(*answered);
  });
}

void LeasingStore::OnPermits(PermitAsk& ask) {
  const Nanos now = clock_.Now();
  std::vector<std::int64_t> names;
  bool decided = false;
  for (std::size_t i = 0; i < ask.applications.size(); ++i) {
    const Application& answer = ask.applications[i];
    decided |= answer.status.ok();
    if (answer.status.ok() && answer.granted > 0) names.push_back(ask.decisions[i].lease);
  }
  metrics_->granted.Add(names.size());
  const auto found = stocks_.find(ask.key);
  const bool known = found != stocks_.end() && found->second.terms() == ask.terms;
  if (known && !decided) return found->second.Failed(now);
  const bool kept = known && !draining_ &&
                    found->second.OnGrant({.names = names,
                                           .standing = ask.decisions.back(),
                                           .sent = ask.sent,
                                           .now = now,
                                           .pause = Pause(ask.terms.term)},
                                          flaws_);
  if (!kept) return ReleasePermits(ask.key, ask.terms, names);
  CountHeld(static_cast<std::int64_t>(names.size()));
}

/// A permit taken for a check now belongs to its client, or goes back into stock. One that has
/// ended in the meantime, or that was charged under other terms, is released.
void LeasingStore::SettlePermit(const Taken& taken, const Application& application, bool spent,
                                Nanos now) {
  if (spent) return metrics_->spent.Add();
  application.decisions[taken.position].lease = 0;
  const store::Charge& charge = application.charges[taken.position];
  const auto found = stocks_.find(charge.key);
  if (found != stocks_.end() && found->second.id() == taken.lot && taken.until >= now) {
    found->second.PutBack({taken.permit, taken.until});
    CountHeld(1);
    return;
  }
  const algorithm::LeaseTerms terms{*charge.quota};
  ReleasePermits(charge.key, terms, {&taken.permit, 1});
}

void LeasingStore::GiveBackPermits(Stocks::value_type& entry) {
  PermitStock& stock = entry.second;
  CountHeld(-static_cast<std::int64_t>(stock.held()));
  const std::vector<std::int64_t> names = stock.Surrender();
  ReleasePermits(entry.first, stock.terms(), names);
  if (!flaws_.permit_kept) return;
  for (const std::int64_t name : names) stock.PutBack({name, clock_.Now() + stock.terms().term});
}

/// Sent once: a release that is lost takes effect when the store's lease of the permit ends.
void LeasingStore::ReleasePermits(std::string_view key, const algorithm::LeaseTerms& terms,
                                  std::span<const std::int64_t> names) {
  if (names.empty() || inner_ == nullptr) return;
  auto ask = std::make_unique<PermitAsk>(self_, key, terms, Op::kRelease, names.size());
  for (std::size_t i = 0; i < names.size(); ++i) ask->applications[i].lease = names[i];
  metrics_->returned.Add(names.size());
  PermitAsk* raw = ask.release();
  inner_->Apply(raw->applications, [raw] { const std::unique_ptr<PermitAsk> answered(raw); });
}

void LeasingStore::TickStocks(Nanos now) {
  for (auto entry = stocks_.begin(); entry != stocks_.end();) {
    PermitStock& stock = entry->second;
    const std::vector<std::int64_t> ended = stock.Expire(now);
    CountHeld(-static_cast<std::int64_t>(ended.size()));
    ReleasePermits(entry->first, stock.terms(), ended);
    stock.Pass(now);
    if (stock.slack(now) || (!stock.leased() && stock.held() > 0)) GiveBackPermits(*entry);
    entry = stock.idle(now) ? stocks_.erase(entry) : std::next(entry);
  }
}

}  // namespace weir::store::lease
