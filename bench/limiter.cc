// What a check costs from Request to Decision on the memory store: matching, keys, engine,
// combining. One thread; only ratios within one run are meaningful on a busy machine.

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "limiter/policy_limiter.h"
#include "policy/policy_file.h"
#include "policy/policy_set.h"
#include "store/lease/leasing_store.h"
#include "store/memory/memory_store.h"

namespace weir::limiter {
namespace {

constexpr std::size_t kUsers = 10'000;

std::string ManyPolicies(int count) {
  std::string text = R"(
policies:
  - {name: per-user, match: {user: "*"}, quota: {token_bucket: {capacity: 100000000, refill_per_second: 10}}}
)";
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    text += "  - {name: r" + number + ", match: {route: /v1/" + number +
            "}, quota: {token_bucket: {capacity: 100000000, refill_per_second: 10}}}\n";
    text += "  - {name: t" + number + ", match: {tenant: t" + number +
            ", plan: \"gold*\"}, quota: {token_bucket: {capacity: 100000000, refill_per_second: "
            "10}}}\n";
  }
  return text;
}

// The thread's own CPU time: other load on the machine does not count.
double CpuNanos() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

std::unique_ptr<store::Store> Plain(Engine& engine) {
  return std::make_unique<store::memory::MemoryStore>(engine);
}

/// Timers of a store that no one leases from.
class NoTimers final : public Timers {
 public:
  Id After(std::chrono::nanoseconds, std::function<void()>) override { return 1; }
  void Cancel(Id) override {}
};

/// The memory store as in a service whose limits other nodes may lease, though none of its policies
/// is leased.
std::unique_ptr<store::Store> BehindLeases(Engine& engine) {
  static store::lease::Leases leases{store::lease::LeaseOptions{}};
  return std::make_unique<store::lease::LeasingStore>(std::make_unique<NoTimers>(), leases,
                                                      Plain(engine));
}

class Bench {
 public:
  using MakeStore = std::unique_ptr<store::Store> (*)(Engine& engine);

  explicit Bench(const std::string& text, MakeStore make = Plain)
      : live_(Compile(text)),
        engine_(
            *Quota::TokenBucket(1, 1),
            EngineOptions{
                .max_keys = 100'000, .keys = KeyStorage::kText, .clock = nullptr, .on_evict = {}}),
        shared_(live_, ids_, Fallback::Options{}),
        limiter_(shared_, make(engine_)) {}

  /// What tracking the top keys adds to a check, in nanoseconds: the records of a second's worth of
  /// checks at full speed, and counting them.
  double MeasureTop() {
    const std::shared_ptr<KeySampler> sampler = shared_.top.Add();
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < kUsers; ++i) {
      keys.push_back("default/per-user|user:user-" + std::to_string(i * 7919 % kUsers));
    }
    constexpr int kSeconds = 5;
    constexpr std::size_t kPerSecond = 5'000'000;
    double nanos = 0;
    for (int second = 0; second <= kSeconds; ++second) {
      const double start = CpuNanos();
      for (std::size_t i = 0; i < kPerSecond; ++i) {
        sampler->Note(keys[i % kUsers], 0,
                      i % 16 == 0 ? limiter::Outcome::kLimited : limiter::Outcome::kAllowed);
      }
      shared_.top.Collect(second * Nanos{1'000'000'000});
      // In the first second the sampler does not know yet how many will arrive.
      if (second > 0) nanos += CpuNanos() - start;
    }
    return nanos / (kSeconds * static_cast<double>(kPerSecond));
  }

  /// Nanoseconds per check, made in batches of `batch`.
  double Measure(std::size_t batch, bool bare_key, const std::string& route) {
    std::vector<std::string> users;
    for (std::size_t i = 0; i < kUsers; ++i)
      users.push_back("user-" + std::to_string(i * 7919 % kUsers));
    std::vector<Check> checks(batch);
    std::vector<std::array<policy::Entry, 2>> entries(batch);
    std::vector<policy::Descriptor> descriptors(batch);
    std::size_t next = 0;
    const auto round = [&] {
      for (std::size_t i = 0; i < batch; ++i) {
        const std::string& user = users[next++ % kUsers];
        if (bare_key) {
          checks[i].request.key = user;
        } else {
          entries[i] = {policy::Entry{"user", user}, policy::Entry{"route", route}};
          descriptors[i] = entries[i];
          checks[i].request.descriptors = std::span(&descriptors[i], 1);
        }
      }
      limiter_.Decide(checks, [] {});
    };
    const auto run = [&](std::size_t total) {
      for (std::size_t done = 0; done < total; done += batch) round();
    };
    run(2 * kUsers);
    constexpr std::size_t kTotal = 500'000;
    const double start = CpuNanos();
    run(kTotal);
    return (CpuNanos() - start) / static_cast<double>(kTotal);
  }

 private:
  std::shared_ptr<const policy::PolicySet> Compile(const std::string& text) {
    std::vector<policy::yaml::Problem> problems;
    auto definitions = policy::ParsePolicies(text, "bench", problems);
    auto set =
        policy::PolicySet::Compile(std::move(definitions), {policy::DefaultPolicy(), 0.1}, ids_);
    if (!problems.empty() || !set.ok()) std::abort();
    return *set;
  }

  policy::PolicyIds ids_;
  policy::LivePolicies live_;
  Engine engine_;
  Shared shared_;
  PolicyLimiter limiter_;
};

void Print(const char* name, double value, const char* unit) {
  std::printf("figure %s %.3g %s\n", name, value, unit);
}

/// What a leasing store in front adds to a check whose policy is not leased, in nanoseconds: the
/// minimum of several alternating runs, since others use the machine as well.
void PrintLeasingHop() {
  Bench plain(ManyPolicies(2));
  Bench behind(ManyPolicies(2), BehindLeases);
  for (const auto& [name, batch] : {std::pair("limiter.leasing_hop.ns", std::size_t{1}),
                                    std::pair("limiter.leasing_hop.batch32.ns", std::size_t{32})}) {
    double without = 1e9;
    double with = 1e9;
    for (int i = 0; i < 9; ++i) {
      without = std::min(without, plain.Measure(batch, false, "/none"));
      with = std::min(with, behind.Measure(batch, false, "/none"));
    }
    Print(name, with - without, "ns");
    Print((std::string(name) + ".share").c_str(), 100 * (with / without - 1), "%");
  }
}

void Main() {
  PrintLeasingHop();
  Bench few(ManyPolicies(2));
  Bench many(ManyPolicies(5'000));
  const double top = few.MeasureTop();
  Print("limiter.key.ns", few.Measure(1, true, ""), "ns");
  const double batched = few.Measure(32, true, "");
  Print("limiter.key.batch32.ns", batched, "ns");
  Print("limiter.top.ns", top, "ns");
  Print("limiter.key.batch32.checks_per_s", 1e9 / batched, "1/s");
  Print("limiter.key.batch32.without_top.checks_per_s", 1e9 / (batched - top), "1/s");
  Print("limiter.top.share", 100 * top / batched, "%");
  const double one = few.Measure(1, false, "/none");
  const double of_many = many.Measure(1, false, "/none");
  Print("limiter.policy.ns", one, "ns");
  Print("limiter.policy.batch32.ns", few.Measure(32, false, "/none"), "ns");
  Print("limiter.policy.of_10001.ns", of_many, "ns");
  Print("limiter.policy.of_10001.ratio", of_many / one, "x");
  Print("limiter.two_policies.ns", few.Measure(1, false, "/v1/1"), "ns");
}

}  // namespace
}  // namespace weir::limiter

int main() { weir::limiter::Main(); }
