#include "store/guard/prober.h"

#include <bitset>
#include <utility>

#include "store/guard/asio_timers.h"

namespace weir::store::guard {
namespace {

constexpr std::chrono::milliseconds kTick{20};
constexpr Nanos kQuietTime = 1'000'000'000;
/// A store that did not answer is probed again sooner, since the breaker needs several failures.
constexpr Nanos kDoubtTime = 100'000'000;

}  // namespace

/// Lives until its last probe has been answered.
struct Prober::State : std::enable_shared_from_this<State> {
  State(std::unique_ptr<Timers> its_timers, Guard& its_guard, GuardedStore& its_store)
      : guard(its_guard), store(its_store), timers(std::move(its_timers)) {}

  void Wait() {
    timers->After(kTick, [this] {
      const auto self = shared_from_this();
      Tick();
      if (!ended) Wait();
    });
  }

  void Tick() {
    bool all_closed = true;
    for (std::uint32_t part = 0; part < kMaxParts; ++part) {
      if (guard.breaker(part).closed()) continue;
      all_closed = false;
      if (!probing[part] && guard.breaker(part).ClaimProbe()) Knock(part);
    }
    if (!all_closed || asking) return;
    const Nanos now = guard.clock().Now();
    const Nanos patience = guard.up() ? kQuietTime : kDoubtTime;
    if (now - guard.last_success() < kQuietTime || now - asked < patience) return;
    Ask(now);
  }

  void Knock(std::uint32_t part) {
    probing[part] = true;
    store.Probe(part, [self = shared_from_this(), part](const Status& status) {
      self->probing[part] = false;
      if (self->ended) return;
      Breaker& breaker = self->guard.breaker(part);
      status.ok() ? breaker.ProbeSucceeded() : breaker.ProbeFailed();
    });
  }

  void Ask(Nanos now) {
    asking = true;
    asked = now;
    store.Ask([self = shared_from_this()](const Status&) { self->asking = false; });
  }

  Guard& guard;
  GuardedStore& store;
  std::unique_ptr<Timers> timers;
  Nanos asked = 0;
  bool asking = false;
  std::bitset<kMaxParts> probing;
  bool ended = false;
};

Prober::Prober(boost::asio::io_context& io, Guard& guard, GuardedStore& store)
    : Prober(std::make_unique<AsioTimers>(io), guard, store) {}

Prober::Prober(std::unique_ptr<Timers> timers, Guard& guard, GuardedStore& store)
    : state_(std::make_shared<State>(std::move(timers), guard, store)) {
  state_->Wait();
}

Prober::~Prober() {
  state_->ended = true;
  state_->timers.reset();
}

}  // namespace weir::store::guard
