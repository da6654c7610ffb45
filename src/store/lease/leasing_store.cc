#include "store/lease/leasing_store.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/boot_clock.h"
#include "store/lease/leasing_call.h"

namespace weir::store::lease {
namespace {

constexpr std::chrono::milliseconds kTick{10};
constexpr int kEpochBits = 20;

bool AnyLeased(const Application& application) noexcept {
  return std::ranges::any_of(application.terms, [](const auto* terms) { return terms != nullptr; });
}

bool ConcernsLeases(const Application& application) noexcept {
  return application.op == Op::kReset || application.region.term > 0 || AnyLeased(application);
}

/// What a region's store may do with an application that goes on to it; nothing for those with
/// several charges, which the home store decides.
RegionTerms RegionOf(const Application& application) noexcept {
  if (application.op != Op::kCharge || application.charges.size() != 1) return {};
  if (application.terms.empty() || application.terms[0] == nullptr) return application.region;
  return {application.terms[0]->region, application.terms[0]->term};
}

/// Nodes return what a region has lent them by the number of its grant. So no other process may
/// have a grant with the same number: not another reactor, nor this one before a restart.
std::uint64_t FirstGrant(const LeaseOptions& options) {
  if (!options.lends) return 0;
  constexpr unsigned kPositive = 2;
  if (options.seed != 0) return std::mt19937_64(options.seed)() >> kPositive;
  std::random_device device;
  return ((std::uint64_t{device()} << 32U) | device()) >> kPositive;
}

}  // namespace

LeasingStore::LeasingStore(std::unique_ptr<Timers> timers, Leases& leases,
                           std::unique_ptr<Store> inner)
    : leases_(leases),
      clock_(leases.options().clock == nullptr ? static_cast<const Clock&>(BootClock::Get())
                                               : *leases.options().clock),
      lends_(leases.options().lends),
      flaws_(leases.options().flaws),
      metrics_(leases.AddMetrics()),
      random_(leases.options().seed != 0 ? leases.options().seed : std::random_device{}()),
      grants_(FirstGrant(leases.options())),
      inner_(std::move(inner)),
      timers_(std::move(timers)),
      self_(std::make_shared<LeasingStore*>(this)) {}

LeasingStore::~LeasingStore() {
  inner_.reset();  // answers what still waits
  EndAllWaits();
  *self_ = nullptr;
  metrics_->keys = 0;
  metrics_->held = 0;
  metrics_->sharing = 0;
}

void LeasingStore::Apply(std::span<Application> batch, Done done) {
  if (inner_ == nullptr) {
    for (Application& application : batch) application.status = ShuttingDown();
    return done();
  }
  if (std::ranges::none_of(batch, ConcernsLeases)) return inner_->Apply(batch, std::move(done));
  const Nanos now = clock_.Now();
  std::size_t answered = 0;
  while (answered < batch.size() && DecideNext(batch[answered], now)) ++answered;
  if (answered == batch.size()) return done();
  ApplyFrom(answered, batch, now, std::move(done));
}

/// Handles the first of a batch that could not be answered here, and all after it.
void LeasingStore::ApplyFrom(std::size_t first, std::span<Application> batch, Nanos now,
                             Done done) {
  std::unique_ptr<Call> call;
  std::vector<std::uint32_t> waits;
  for (std::size_t i = first; i < batch.size(); ++i) {
    if (i != first && DecideNext(batch[i], now)) continue;
    if (waits_) {
      waits.push_back(static_cast<std::uint32_t>(i));
      continue;
    }
    if (call == nullptr) call = std::make_unique<Call>();
    call->places.push_back(static_cast<std::uint32_t>(i));
    call->ours.push_back(batch[i]);
    call->ours.back().terms = {};
    call->ours.back().region = lends_ ? RegionTerms() : RegionOf(batch[i]);
    call->splits.push_back(taken_.empty() ? nullptr : Part(call->ours.back()));
  }
  if (!waits.empty()) done = TellWaiting(batch, waits, call != nullptr, std::move(done));
  if (call == nullptr) return;
  call->theirs = batch;
  call->done = std::move(done);
  PassOn(std::move(call));
}

void LeasingStore::PassOn(std::unique_ptr<Call> call) {
  call->owner = self_;
  if (inner_ == nullptr) return call->Fail(ShuttingDown());
  Call* raw = call.release();
  inner_->Apply(raw->ours, [raw] {
    const std::unique_ptr<Call> answered(raw);
    if (*answered->owner != nullptr) return (*answered->owner)->OnAnswer(*answered);
    answered->Fail(ShuttingDown());
  });
}

/// True if it was answered here. Permits taken for an application that the store has to decide are
/// in taken_; waits_: it waits for permits first.
bool LeasingStore::DecideNext(Application& application, Nanos now) {
  taken_.clear();
  waits_ = false;
  application.estimated = false;
  if (application.op == Op::kReset) Forget(application);
  if (lends_ && application.region.term > 0) return Serve(application, now);
  if (!AnyLeased(application)) return false;
  if (application.op == Op::kCharge) return Charge(application, now);
  if (application.op == Op::kRefund && !flaws_.refund_in_store) return Refund(application, now);
  return false;
}

bool LeasingStore::Charge(Application& application, Nanos now) {
  const std::span<const store::Charge> charges = application.charges;
  std::size_t met = 0;
  bool dry = false;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (application.terms[i] == nullptr || charges[i].cost <= 0) continue;
    if (charges[i].quota->algorithm() == Algorithm::kConcurrency) {
      if (HandOut(application, i, now)) ++met;
      continue;
    }
    Holdings::value_type* entry = Watch(charges[i], *application.terms[i], now);
    if (entry == nullptr) continue;
    Holding& holding = entry->second;
    if (Meet(application, i, *entry, now)) {
      ++met;
      application.decisions[i] = holding.Estimate(now, true);
    } else if (holding.leased() && holding.Dry(now)) {
      dry = true;
      holding.share().Refused(now);
      application.decisions[i] = holding.Estimate(now, false);
    } else {
      waits_ = Wait(application, holding, now);
    }
    if (holding.share().ShouldAsk(now) && holding.MarkShareDue()) AskSoon(entry->first);
  }
  if (met == charges.size()) return Answer(application, true);
  return charges.size() == 1 && dry && Answer(application, false);
}

/// Spends what is held here for one charge, and makes sure that more is requested in time.
bool LeasingStore::Meet(Application& application, std::size_t place, Holdings::value_type& entry,
                        Nanos now) {
  const store::Charge& charge = application.charges[place];
  Holding& holding = entry.second;
  const bool alone = application.charges.size() == 1;
  if (MeetFromShare(holding, charge, place, alone, now)) return true;
  holding.Note(now, charge.cost);
  if (holding.share().active(now)) holding.Insist();
  // If the store must be asked as well, permits must last until it has answered.
  const Nanos rest = alone ? 0 : holding.RestForStore();
  const auto position = static_cast<std::uint32_t>(place);
  const bool met = alone ? holding.Take(now, charge.cost)
                         : holding.Hold(now, charge.cost, rest, position, taken_);
  if (met) CountHeld(-charge.cost);
  if (met && alone) metrics_->spent.Add(static_cast<std::uint64_t>(charge.cost));
  if (!met && !alone && holding.TooSlow(now)) {
    // The store decides all of it; permits that are of no use here are returned to it.
    GiveBack(entry.first, holding, now);
    return false;
  }
  if (holding.ShouldAsk(now) && holding.MarkDue()) AskSoon(entry.first);
  return met;
}

bool LeasingStore::Answer(Application& application, bool applied) {
  application.applied = applied;
  if (!application.status.ok()) application.status = {};
  application.estimated = true;
  metrics_->local.Add();
  if (!applied) metrics_->refused.Add();
  for (const Taken& taken : taken_) Settle(taken, application, true, 0);
  taken_.clear();
  return true;
}

void LeasingStore::OnAnswer(Call& call) {
  const Nanos now = clock_.Now();
  for (std::size_t i = 0; i < call.ours.size(); ++i) {
    Application& to = call.theirs[call.places[i]];
    to.applied = call.ours[i].applied;
    to.status = call.ours[i].status;
    to.granted = call.ours[i].granted;
    to.at = call.ours[i].at;
    to.estimated = call.ours[i].estimated;
    if (call.splits[i] != nullptr) Join(*call.splits[i], to, now);
    if (to.op == Op::kCharge && to.status.ok() && !to.applied) NoteRefusals(to, now);
  }
  call.done();
}

/// After a reset the key must be fresh: permits held for it are forgotten, too.
void LeasingStore::Forget(const Application& application) {
  for (const store::Charge& charge : application.charges) {
    if (const auto found = holdings_.find(charge.key); found != holdings_.end()) {
      CountHeld(-found->second.held());
      found->second.Surrender();
    }
    if (const auto found = stocks_.find(charge.key); found != stocks_.end()) {
      const auto held = static_cast<std::int64_t>(found->second.Surrender().size());
      CountHeld(-held);
    }
  }
}

LeasingStore::Holdings::value_type* LeasingStore::Watch(const store::Charge& charge,
                                                        const algorithm::LeaseTerms& terms,
                                                        Nanos now) {
  if (draining_) return nullptr;
  Holdings::value_type* entry = FindLately(charge.key);
  if (entry == nullptr) {
    if (Full()) return nullptr;
    const Holding fresh(terms, now, ++grants_ << kEpochBits);
    entry = &*holdings_.emplace(std::string(charge.key), fresh).first;
    SetTick();
  } else if (entry->second.terms() != terms) {
    GiveBack(entry->first, entry->second, now);
    ReleaseShares(entry->first, entry->second);
    entry->second = Holding(terms, now, ++grants_ << kEpochBits);
  }
  return entry;
}

/// As holdings_.find, but faster for a key that was found here recently: a hot one.
LeasingStore::Holdings::value_type* LeasingStore::FindLately(std::string_view key) {
  // Keys of one policy differ near their ends.
  std::uint32_t end = 0;
  if (key.size() >= sizeof end) std::memcpy(&end, key.data() + key.size() - sizeof end, sizeof end);
  constexpr std::uint32_t kSpread = 0x9E3779B1;
  const std::size_t place = (end + static_cast<std::uint32_t>(key.size())) * kSpread >> 26U;
  Holdings::value_type*& lately = lately_[place];
  if (lately != nullptr && lately->first == key) return lately;
  const auto found = holdings_.find(key);
  if (found == holdings_.end()) return nullptr;
  return lately = &*found;
}

HeldHere LeasingStore::Find(std::string_view key) const {
  if (const auto found = stocks_.find(key); found != stocks_.end()) {
    return {found->second.leased(), static_cast<std::int64_t>(found->second.held())};
  }
  const auto found = holdings_.find(key);
  if (found == holdings_.end()) return {};
  const Holding& holding = found->second;
  const Nanos now = clock_.Now();
  return {holding.leased() || holding.share().active(now), holding.Available(now),
          holding.share().PerSecond(now)};
}

void LeasingStore::SetTick() {
  if (tick_ != 0) return;
  tick_ = timers_->After(kTick, [this] {
    tick_ = 0;
    Tick();
  });
}

void LeasingStore::Tick() {
  const Nanos now = clock_.Now();
  std::uint64_t leased = 0;
  std::uint64_t sharing = 0;
  for (auto entry = holdings_.begin(); entry != holdings_.end();) {
    Holding& holding = entry->second;
    const std::int64_t lost = holding.Expire(now);
    CountHeld(-lost);
    metrics_->lost.Add(static_cast<std::uint64_t>(lost));
    holding.Pass(now);
    if (holding.leased()) ++leased;
    if (holding.slack(now) || (!holding.leased() && holding.held() > 0)) {
      GiveBack(entry->first, holding, now);
    }
    if (holding.share().slack(now)) ReleaseShares(entry->first, holding);
    if (holding.share().active(now)) ++sharing;
    const bool idle = holding.idle(now) && holding.share().idle(now);
    if (idle) lately_ = {};
    entry = idle ? holdings_.erase(entry) : std::next(entry);
  }
  TickStocks(now);
  const auto stocked = [](const auto& entry) { return entry.second.leased(); };
  leased += static_cast<std::uint64_t>(std::ranges::count_if(stocks_, stocked));
  metrics_->keys.store(leased, std::memory_order_relaxed);
  metrics_->sharing.store(sharing, std::memory_order_relaxed);
  if (!holdings_.empty() || !stocks_.empty()) SetTick();
  EndLateWaits(now);
}

void LeasingStore::Drain() {
  if (std::exchange(draining_, true)) return;
  const Nanos now = clock_.Now();
  for (auto& [key, holding] : holdings_) {
    GiveBack(key, holding, now);
    ReleaseShares(key, holding);
  }
  for (auto& entry : stocks_) GiveBackPermits(entry);
  lately_ = {};
  holdings_.clear();
  stocks_.clear();
  metrics_->keys.store(0, std::memory_order_relaxed);
  metrics_->sharing.store(0, std::memory_order_relaxed);
  EndAllWaits();
}

/// About half a term, so that a node asks no more often when there is too little than when there is
/// enough; randomized, so that nodes take turns.
Nanos LeasingStore::Pause(Nanos term) {
  return std::uniform_int_distribution<Nanos>(term * 3 / 8, term * 5 / 8)(random_);
}

}  // namespace weir::store::lease
