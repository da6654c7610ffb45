#include "region.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "algorithm/lease.h"

namespace weir::simulation {
namespace {

store::guard::GuardOptions GuardOptionsOf(const Scenario& scenario, const Clock& clock,
                                          std::uint32_t seed) {
  store::guard::GuardOptions options;
  options.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::nanoseconds(scenario.timeout));
  options.clock = &clock;
  options.quiet = true;
  options.breaker.seed = seed;
  options.cache.max_keys = 0;
  return options;
}

store::lease::LeaseOptions LeaseOptionsOf(const Scenario& scenario, const Clock& clock,
                                          std::uint32_t seed) {
  store::lease::LeaseOptions options;
  options.clock = &clock;
  options.seed = seed;
  options.lends = true;
  options.flaws.region_outlived = scenario.mutant == Mutant::kRegionOutlived;
  return options;
}

/// The key that nodes use for the hot policy's bucket.
constexpr std::string_view kHotKey = "default/hot|hot:1";

std::uint32_t Seed(std::mt19937_64& random) { return static_cast<std::uint32_t>(random() | 1U); }

}  // namespace

/// From the leasing store down to the link.
struct Region::Process {
  store::guard::Guard guard;
  store::lease::Leases leases;
  std::unique_ptr<store::guard::GuardedStore> guarded;
  std::unique_ptr<store::guard::Prober> prober;
  std::unique_ptr<store::lease::LeasingStore> leasing;

  /// Between the leasing store and the guard: sees when the home store made each grant.
  class Tap final : public store::Store {
   public:
    Tap(Process& process, std::unordered_map<std::uint64_t, Nanos>& charged)
        : process_(process), charged_(charged) {}
    void Apply(std::span<store::Application> batch, store::Done done) override {
      const bool leases = batch.size() == 1 && batch.front().op == store::Op::kLease;
      process_.guarded->Apply(batch, [this, batch, leases, last = std::move(done)] {
        const Nanos at = batch.front().at;
        const std::uint64_t before = process_.leasing == nullptr ? 0 : grants();
        last();  // the memory of `batch` may no longer exist
        if (leases && process_.leasing != nullptr && grants() == before + 1)
          charged_[grants()] = at;
      });
    }

   private:
    std::uint64_t grants() const { return process_.leasing->last_grant(); }

    Process& process_;
    std::unordered_map<std::uint64_t, Nanos>& charged_;
  };

  Process(const store::guard::GuardOptions& guarding, const store::lease::LeaseOptions& lending)
      : guard(guarding), leases(lending) {}
  ~Process() {
    prober.reset();
    guarded->Close();  // answers everything that still waits
    leasing.reset();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
};

Region::Region(Events& events, Server& home, const Scenario& scenario, std::uint64_t seed,
               Server::OnCharged on_charged)
    : events_(events),
      home_(home),
      scenario_(scenario),
      on_charged_(std::move(on_charged)),
      random_(seed),
      clock_(events, static_cast<Nanos>(seed % (std::uint64_t{1} << 50)),
             seed % 2 == 0 ? kWorstPpm : -kWorstPpm),
      pulse_(std::make_shared<Pulse>()),
      process_(Start()) {}

Region::~Region() = default;

std::unique_ptr<Region::Process> Region::Start() {
  const std::uint32_t seed = Seed(random_);
  auto process = std::make_unique<Process>(GuardOptionsOf(scenario_, clock_, seed),
                                           LeaseOptionsOf(scenario_, clock_, Seed(random_)));
  const auto timers = [this] { return std::make_unique<NodeTimers>(events_, clock_, pulse_); };
  process->guarded = std::make_unique<store::guard::GuardedStore>(
      timers(), process->guard,
      std::make_unique<RemoteStore>(events_, home_, scenario_, link_, random_, pulse_));
  process->prober =
      std::make_unique<store::guard::Prober>(timers(), process->guard, *process->guarded);
  process->leasing = std::make_unique<store::lease::LeasingStore>(
      timers(), process->leases, std::make_unique<Process::Tap>(*process, charged_));
  return process;
}

std::uint64_t Region::lent() const {
  return lent_ + process_->leases.metrics().front()->lent.value();
}

/// A client's call, and its memory.
struct Region::Own {
  Own(const Quota& quota, store::Op op, std::int64_t cost)
      : terms(algorithm::AtRegion(*algorithm::RegionTermsFor(quota, algorithm::kLongestLease))),
        charge{kHotKey, cost, &terms.quota} {
    application.op = op;
    application.charges = {&charge, 1};
    application.terms = {&pointer, 1};
    application.decisions = {&decision, 1};
  }
  Own(const Own&) = delete;
  Own& operator=(const Own&) = delete;
  ~Own() = default;

  const algorithm::LeaseTerms terms;
  const algorithm::LeaseTerms* const pointer = &terms;
  store::Charge charge;
  Decision decision;
  store::Application application;
};

void Region::Ask(store::Op op, std::int64_t cost, std::function<void()> applied) {
  const auto own = std::make_shared<Own>(scenario_.quota, op, cost);
  process_->leasing->Apply({&own->application, 1}, [this, own, told = std::move(applied)] {
    Note(own->application);
    if (own->application.status.ok() && own->application.applied) told();
  });
}

void Region::Check(std::int64_t cost, std::function<void()> admitted) {
  Ask(store::Op::kCharge, cost, std::move(admitted));
}

std::int64_t Region::Refund(std::int64_t cost) {
  const store::lease::LeaseMetrics& metrics = *process_->leases.metrics().front();
  const std::int64_t held = metrics.held.load();
  Ask(store::Op::kRefund, cost, [] {});
  const std::int64_t back = metrics.held.load() - held;
  refunded_ += static_cast<std::uint64_t>(back);
  if (refunded_ > metrics.spent.value() && !violation_) {
    violation_ = "a region gave its clients " + std::to_string(refunded_) +
                 " permits back, of which they had spent " + std::to_string(metrics.spent.value());
  }
  return back;
}

void Region::Crash() {
  lent_ = lent();
  refunded_ = 0;
  process_.reset();
  process_ = Start();
}

void Region::Apply(std::span<store::Application> batch, store::Done done) {
  if (const Nanos due = pulse_->Due(events_.now()); due > events_.now()) {
    events_.At(due, [this, batch, last = std::move(done)] { Apply(batch, last); });
    return;
  }
  // One by one, so that decisions made here are noted when they are made.
  auto left = std::make_shared<std::size_t>(batch.size());
  for (store::Application& application : batch) {
    process_->leasing->Apply({&application, 1}, [this, &application, left, done] {
      Note(application);
      if (--*left == 0) done();
    });
  }
}

/// Notes what was decided from permits held here; the home store has the rest in its ledger.
void Region::Note(const store::Application& application) {
  if (application.op == store::Op::kLease) return CheckLent(application);
  if (application.op != store::Op::kCharge || !application.status.ok()) return;
  if (!application.applied || !application.estimated) return;
  const store::Charge& charge = application.charges.front();
  on_charged_(charge.key, charge.cost, 0);
}

/// Checks what the oracle sees only if a limit is used to the last permit: a node may spend until
/// its lease ends, and until then the home store must still count the permits.
void Region::CheckLent(const store::Application& application) {
  if (!application.status.ok() || application.granted == 0 || violation_) return;
  const Quota& quota = *application.charges.front().quota;
  const Nanos charged = charged_.at(static_cast<std::uint64_t>(application.at));
  Nanos ends = charged + application.region.term;
  Nanos width = quota.window().count();
  if (quota.algorithm() == Algorithm::kSlidingCounter) width = (width - 1) / quota.buckets() + 1;
  const bool aligned = quota.algorithm() == Algorithm::kSlidingCounter ||
                       quota.algorithm() == Algorithm::kFixedWindow;
  if (aligned) ends = std::min(ends, (charged / width + 1) * width);
  const Nanos spent = StoreClock::kEpoch + events_.now() + application.region.lent;
  if (spent <= ends) return;
  violation_ = "a region lent permits that end " + std::to_string(spent - ends) +
               " ns before the node's lease does";
}

}  // namespace weir::simulation
