#include "node_load.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/lease.h"
#include "store/guard/asio_timers.h"
#include "store/guard/guarded_store.h"
#include "store/lease/leasing_store.h"
#include "store/memory/memory_store.h"

namespace weir::bench {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kCallers = 8;
constexpr double kSeconds = 2;

// Never runs out: fills in 50 s, so T is 250 ms.
Quota Plenty() { return *Quota::TokenBucket(std::int64_t{1} << 36, 1'374'389'534); }

store::guard::GuardOptions Patient() {
  store::guard::GuardOptions options;
  options.timeout = std::chrono::seconds(5);
  options.cache.max_keys = 0;
  return options;
}

/// Counts the applications sent to the server.
class Counting final : public store::Store {
 public:
  Counting(std::unique_ptr<Store> inner, std::uint64_t& calls)
      : inner_(std::move(inner)), calls_(calls) {}
  void Apply(std::span<store::Application> batch, store::Done done) override {
    calls_ += batch.size();
    inner_->Apply(batch, std::move(done));
  }

 private:
  std::unique_ptr<Store> inner_;
  std::uint64_t& calls_;
};

/// The parts of one node between a check and the server.
class Node {
 public:
  Node(const MakeInner& make, Kind kind)
      : engine_(Plenty()), guard_(Patient()), leases_(store::lease::LeaseOptions{}) {
    if (kind == Kind::kMemory) {
      store_ = std::make_unique<store::memory::MemoryStore>(engine_);
      return;
    }
    store_ = std::make_unique<Counting>(
        std::make_unique<store::guard::GuardedStore>(io_, guard_, make(io_)), calls_);
    if (kind != Kind::kLeased) return;
    leased_ = true;
    store_ = std::make_unique<store::lease::LeasingStore>(
        std::make_unique<store::guard::AsioTimers>(io_), leases_, std::move(store_));
  }
  ~Node() { store_.reset(); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// One check under way.
  struct Ask {
    store::Charge charge;
    const algorithm::LeaseTerms* terms = nullptr;
    Decision decision;
    store::Application application;
    bool done = true;
  };
  void Send(Ask& ask, std::string_view key) {
    ask.charge = {key, 1, &terms_.quota};
    ask.terms = &terms_;
    ask.application = {};
    ask.application.charges = {&ask.charge, 1};
    ask.application.decisions = {&ask.decision, 1};
    if (leased_) ask.application.terms = {&ask.terms, 1};
    ask.done = false;
    store_->Apply({&ask.application, 1}, [&ask] { ask.done = true; });
  }
  /// Runs what the reactor has pending now.
  void Turn() {
    io_.restart();
    io_.poll();
  }
  void Wait(const Ask& ask) {
    while (!ask.done) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(100));
    }
    if (ask.application.status.ok() && ask.application.applied) return;
    std::fprintf(stderr, "leases: a check failed\n");
    std::exit(1);
  }
  std::uint64_t calls() const { return calls_; }
  std::int64_t held() const {
    std::int64_t sum = 0;
    for (const auto& each : leases_.metrics()) sum += each->held.load();
    return sum;
  }

 private:
  boost::asio::io_context io_{1};
  Engine engine_;
  store::guard::Guard guard_;
  store::lease::Leases leases_;
  algorithm::LeaseTerms terms_ = *algorithm::TermsFor(Plenty());
  std::uint64_t calls_ = 0;
  bool leased_ = false;
  std::unique_ptr<store::Store> store_;
};

/// Keeps kCallers checks under way for a while; returns how many were answered per second.
double RunCallers(Node& node, double seconds) {
  std::vector<Node::Ask> asks(kCallers);
  std::uint64_t answered = 0;
  const auto began = steady_clock::now();
  const auto end = began + std::chrono::duration<double>(seconds);
  while (steady_clock::now() < end) {
    for (int i = 0; i < 16; ++i) {
      for (Node::Ask& ask : asks) {
        if (!ask.done) continue;
        ++answered;
        node.Send(ask, "hot");
      }
    }
    node.Turn();
  }
  for (const Node::Ask& ask : asks) node.Wait(ask);
  return static_cast<double>(answered) /
         std::chrono::duration<double>(steady_clock::now() - began).count();
}

std::vector<double> Sorted(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all;
}

/// Latencies in microseconds of single checks of a hot key, at 5,000 a second.
std::vector<double> HotTimes(const MakeInner& make, Kind kind) {
  Node node(make, kind);
  static_cast<void>(RunCallers(node, 0.3));
  std::vector<double> all;
  auto due = steady_clock::now();
  for (int i = 0; i < 10'000; ++i, due += std::chrono::microseconds(200)) {
    while (steady_clock::now() < due) node.Turn();
    Node::Ask ask;
    const auto began = steady_clock::now();
    node.Send(ask, "hot");
    node.Wait(ask);
    all.push_back(std::chrono::duration<double, std::micro>(steady_clock::now() - began).count());
  }
  return Sorted(std::move(all));
}

}  // namespace

double HotRate(const MakeInner& make, Kind kind) {
  Node node(make, kind);
  static_cast<void>(RunCallers(node, kSeconds / 4));
  return RunCallers(node, kSeconds);
}

Added HotAdded(const MakeInner& make) {
  const std::vector<double> leased = HotTimes(make, Kind::kLeased);
  const std::vector<double> memory = HotTimes(make, Kind::kMemory);
  const auto at = [&](std::size_t part) {
    const std::size_t index = leased.size() * part / 1000;
    return leased[index] - memory[index];
  };
  return {at(500), at(999)};
}

double ColdRatio(const MakeInner& make) {
  Node leased(make, Kind::kLeased);
  Node exact(make, Kind::kExact);
  const auto time = [](Node& node, const std::string& key) {
    Node::Ask ask;
    const auto began = steady_clock::now();
    node.Send(ask, key);
    node.Wait(ask);
    return std::chrono::duration<double, std::micro>(steady_clock::now() - began).count();
  };
  std::vector<double> ours;
  std::vector<double> theirs;
  for (int i = 0; i < 500; ++i) {
    ours.push_back(time(leased, "cold" + std::to_string(i)));
    theirs.push_back(time(exact, "chill" + std::to_string(i)));
  }
  return Sorted(std::move(ours))[250] / Sorted(std::move(theirs))[250];
}

Paced AtOneThousand(const MakeInner& make) {
  Node node(make, Kind::kLeased);
  constexpr int kWarm = 1000;
  constexpr int kChecks = 3000;
  std::uint64_t before = 0;
  std::int64_t held = 0;
  auto due = steady_clock::now();
  for (int i = 0; i < kWarm + kChecks; ++i, due += std::chrono::milliseconds(1)) {
    while (steady_clock::now() < due) node.Turn();
    if (i == kWarm) before = node.calls();
    Node::Ask ask;
    node.Send(ask, "hot");
    node.Wait(ask);
    if (i >= kWarm) held = std::max(held, node.held());
  }
  constexpr double kLease = 125;  // of half a term
  return {static_cast<double>(node.calls() - before) / kChecks, static_cast<double>(held) / kLease};
}

}  // namespace weir::bench
