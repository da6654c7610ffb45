// ./dev bench engine: our engine and the baseline side by side in one run. Prints `figure` lines;
// every ratio is ours / baseline, medians of interleaved rounds, since other load makes this kind
// of machine noisy.

#include "weir/engine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "baseline_engine.h"

namespace weir::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

// More than any thread can use, with ten seconds' worth stored, so that nothing is denied.
constexpr std::int64_t kCapacity = 1'000'000'000;
constexpr std::int64_t kRefill = 100'000'000;  // per second
constexpr auto kRound = std::chrono::milliseconds(400);
constexpr int kRounds = 3;

Quota BenchQuota() { return *Quota::TokenBucket(kCapacity, kRefill); }

/// Sixteen bytes made from a number in registers, so that reading keys costs neither side a cache
/// miss.
struct Key {
  std::array<char, 16> bytes;
  explicit Key(std::uint64_t n) {
    const std::uint64_t mixed = n * 0x9E3779B97F4A7C15ULL;
    std::memcpy(bytes.data(), &mixed, 8);
    std::memcpy(bytes.data() + 8, &n, 8);
  }
  std::string_view view() const { return {bytes.data(), bytes.size()}; }
};

/// Uniform indices below `keys`.
class Indices {
 public:
  Indices(std::uint64_t seed, std::uint64_t keys) : state_(seed * 2 + 1), keys_(keys) {}
  std::uint64_t Next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return ((state_ >> 32) * keys_) >> 32;
  }

 private:
  std::uint64_t state_;
  std::uint64_t keys_;
};

/// One thread's work: makes some checks and returns how many.
using Work = std::function<std::uint64_t(Indices&)>;

double MillionPerSecond(int threads, std::uint64_t keys, const Work& work) {
  std::atomic<bool> go{false};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> done{0};
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      Indices indices(static_cast<std::uint64_t>(t) + 7919, keys);
      while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
      std::uint64_t mine = 0;
      while (!stop.load(std::memory_order_relaxed)) mine += work(indices);
      done.fetch_add(mine);
    });
  }
  const auto start = SteadyClock::now();
  go.store(true, std::memory_order_release);
  std::this_thread::sleep_for(kRound);
  stop.store(true);
  for (std::thread& thread : pool) thread.join();
  const std::chrono::duration<double, std::micro> took = SteadyClock::now() - start;
  return static_cast<double>(done.load()) / took.count();
}

constexpr int kLoop = 256;

Work Single(Engine& engine) {
  return [&engine](Indices& indices) {
    std::uint64_t allowed = 0;
    for (int i = 0; i < kLoop; ++i) {
      allowed += engine.TryAcquire(Key(indices.Next()).view()).allowed() ? 1 : 0;
    }
    if (allowed != kLoop) std::abort();
    return std::uint64_t{kLoop};
  };
}

Work Batch(Engine& engine) {
  return [&engine](Indices& indices) {
    constexpr int kBatch = 32;
    thread_local std::vector<Key> keys(kBatch, Key(0));
    thread_local std::vector<Ask> asks(kBatch);
    thread_local std::vector<Decision> decisions(kBatch);
    for (int round = 0; round < kLoop / kBatch; ++round) {
      for (int i = 0; i < kBatch; ++i) {
        const auto at = static_cast<std::size_t>(i);
        keys[at] = Key(indices.Next());
        asks[at] = {.key = keys[at].view()};
      }
      engine.TryAcquireBatch(asks, decisions);
      if (!decisions.front().allowed() || !decisions.back().allowed()) std::abort();
    }
    return std::uint64_t{kLoop};
  };
}

Work Baseline(BaselineEngine& engine) {
  return [&engine](Indices& indices) {
    std::uint64_t allowed = 0;
    for (int i = 0; i < kLoop; ++i) {
      allowed += engine.TryAcquire(Key(indices.Next()).view()).allowed ? 1 : 0;
    }
    if (allowed != kLoop) std::abort();
    return std::uint64_t{kLoop};
  };
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void Figure(const std::string& name, double value, const char* unit) {
  std::printf("figure %s %.2f %s\n", name.c_str(), value, unit);
  std::fflush(stdout);
}

std::uint64_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long long total = 0;
  unsigned long long resident = 0;
  const int read = file == nullptr ? 0 : std::fscanf(file, "%llu %llu", &total, &resident);
  if (file != nullptr) std::fclose(file);
  return read == 2 ? resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

void Fill(Engine& engine, std::uint64_t keys) {
  for (std::uint64_t i = 0; i < keys; ++i) (void)engine.TryAcquire(Key(i).view());
}

void Throughput(const std::string& name, std::uint64_t keys) {
  Engine engine(BenchQuota(), {.max_keys = keys});
  BaselineEngine baseline(kCapacity, kRefill, keys);
  Fill(engine, keys);
  for (std::uint64_t i = 0; i < keys; ++i) (void)baseline.TryAcquire(Key(i).view());
  for (const int threads : {1, 2, 10}) {
    std::vector<double> base;
    std::vector<double> single;
    std::vector<double> batch;
    for (int round = 0; round < kRounds; ++round) {
      base.push_back(MillionPerSecond(threads, keys, Baseline(baseline)));
      single.push_back(MillionPerSecond(threads, keys, Single(engine)));
      batch.push_back(MillionPerSecond(threads, keys, Batch(engine)));
    }
    const std::string suffix = name + "." + std::to_string(threads) + "thread.";
    Figure("engine.baseline." + suffix + "mops", Median(base), "M/s");
    Figure("engine.single." + suffix + "mops", Median(single), "M/s");
    Figure("engine.single." + suffix + "ratio", Median(single) / Median(base), "x");
    Figure("engine.batch32." + suffix + "mops", Median(batch), "M/s");
    Figure("engine.batch32." + suffix + "ratio", Median(batch) / Median(base), "x");
  }
}

/// A million keys as programs hold them: each a std::string on the heap, checked in random order,
/// so that reading the key is a cache miss of its own, for both sides.
void Strings() {
  constexpr std::uint64_t kKeys = 1'000'000;
  std::vector<std::string> keys;
  keys.reserve(kKeys);
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    keys.push_back("customer-" + std::to_string(kKeys + i * 7919 % kKeys) + "-account");
  }
  Engine engine(BenchQuota(), {.max_keys = kKeys});
  BaselineEngine baseline(kCapacity, kRefill, kKeys);
  for (const std::string& key : keys) {
    (void)engine.TryAcquire(key);
    (void)baseline.TryAcquire(key);
  }
  const Work single = [&](Indices& indices) {
    for (int i = 0; i < kLoop; ++i) {
      if (!engine.TryAcquire(keys[indices.Next()]).allowed()) std::abort();
    }
    return std::uint64_t{kLoop};
  };
  const Work plain = [&](Indices& indices) {
    for (int i = 0; i < kLoop; ++i) {
      if (!baseline.TryAcquire(keys[indices.Next()]).allowed) std::abort();
    }
    return std::uint64_t{kLoop};
  };
  for (const int threads : {1, 2}) {
    std::vector<double> base;
    std::vector<double> ours;
    for (int round = 0; round < kRounds; ++round) {
      base.push_back(MillionPerSecond(threads, kKeys, plain));
      ours.push_back(MillionPerSecond(threads, kKeys, single));
    }
    const std::string suffix = "1m.strings." + std::to_string(threads) + "thread.";
    Figure("engine.baseline." + suffix + "mops", Median(base), "M/s");
    Figure("engine.single." + suffix + "mops", Median(ours), "M/s");
    Figure("engine.single." + suffix + "ratio", Median(ours) / Median(base), "x");
  }
}

/// Two threads on one key that is exhausted: the flood a limiter exists for.
void Denied() {
  Engine engine(*Quota::TokenBucket(1, 1, std::chrono::hours(1)), {.max_keys = 10'000});
  (void)engine.TryAcquire(Key(0).view());
  const Work work = [&engine](Indices&) {
    for (int i = 0; i < kLoop; ++i) {
      if (engine.TryAcquire(Key(0).view()).allowed()) std::abort();
    }
    return std::uint64_t{kLoop};
  };
  for (const int threads : {1, 2}) {
    Figure("engine.denied.1key." + std::to_string(threads) + "thread.mops",
           MillionPerSecond(threads, 1, work), "M/s");
  }
}

/// Timed call by call, minus the time that reading the timer takes.
void Latency() {
  constexpr std::uint64_t kKeys = 10'000;
  constexpr std::size_t kCalls = 2'000'000;
  Engine engine(BenchQuota(), {.max_keys = kKeys});
  Fill(engine, kKeys);
  Indices indices(1, kKeys);
  std::vector<std::int64_t> took(kCalls);
  std::vector<std::int64_t> timer(kCalls);
  for (std::size_t i = 0; i < kCalls; ++i) {
    const Key key(indices.Next());
    const auto start = SteadyClock::now();
    (void)engine.TryAcquire(key.view());
    const auto end = SteadyClock::now();
    took[i] = (end - start).count();
    timer[i] = (SteadyClock::now() - end).count();
  }
  std::ranges::sort(took);
  std::ranges::sort(timer);
  const std::int64_t own = timer[kCalls / 2];
  Figure("engine.timer.ns", static_cast<double>(own), "ns");
  Figure("engine.p50.10k.ns", static_cast<double>(took[kCalls / 2] - own), "ns");
  Figure("engine.p99.10k.ns", static_cast<double>(took[kCalls / 100 * 99] - own), "ns");
  Figure("engine.p999.10k.ns", static_cast<double>(took[kCalls / 1000 * 999] - own), "ns");
}

/// What the journal adds to a check: the same calls with another thread collecting the changes
/// every 10 ms, and without.
void Tracking() {
  constexpr std::uint64_t kKeys = 1'000'000;
  Engine plain(BenchQuota(), {.max_keys = kKeys});
  Engine tracked(BenchQuota(), {.max_keys = kKeys, .track_changes = true});
  Fill(plain, kKeys);
  Fill(tracked, kKeys);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> bytes{0};
  std::thread collector([&] {
    for (std::string changes; !stop.load(); changes.clear()) {
      tracked.SaveChanges(changes);
      bytes += changes.size();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  std::vector<double> without;
  std::vector<double> with;
  for (int round = 0; round < kRounds; ++round) {
    without.push_back(MillionPerSecond(1, kKeys, Single(plain)));
    with.push_back(MillionPerSecond(1, kKeys, Single(tracked)));
  }
  stop = true;
  collector.join();
  Figure("engine.tracked.1m.1thread.mops", Median(with), "M/s");
  Figure("engine.tracked.1m.1thread.ratio_to_untracked", Median(with) / Median(without), "x");
}

/// Four times as many keys as there is room for: nearly every check creates a key and evicts one.
void Eviction() {
  constexpr std::uint64_t kRoom = 250'000;
  Engine roomy(BenchQuota(), {.max_keys = 4 * kRoom});
  Engine tight(BenchQuota(), {.max_keys = kRoom});
  Fill(roomy, 4 * kRoom);
  Fill(tight, 4 * kRoom);
  const double hits = MillionPerSecond(1, 4 * kRoom, Single(roomy));
  const std::uint64_t before = tight.stats().evicted;
  const double evicting = MillionPerSecond(1, 4 * kRoom, Single(tight));
  if (tight.stats().evicted == before) std::abort();
  Figure("engine.evicting.1m.1thread.mops", evicting, "M/s");
  Figure("engine.evicting.1m.1thread.ratio_to_hits", evicting / hits, "x");
}

void Memory(const std::string& name, std::uint64_t keys, KeyStorage storage) {
  const std::uint64_t before = ResidentBytes();
  Engine engine(BenchQuota(), {.max_keys = keys, .keys = storage});
  Fill(engine, keys);
  const auto used = static_cast<double>(ResidentBytes() - before);
  if (engine.size() != keys) std::abort();
  Figure("engine.bytes_per_key." + name, used / static_cast<double>(keys), "bytes");
  if (keys < 50'000'000) return;
  for (const int threads : {1, 2}) {
    const std::string suffix = "50m." + std::to_string(threads) + "thread.mops";
    Figure("engine.single." + suffix, MillionPerSecond(threads, keys, Single(engine)), "M/s");
    Figure("engine.batch32." + suffix, MillionPerSecond(threads, keys, Batch(engine)), "M/s");
  }
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir::bench;
  const std::string_view only = argc > 1 ? argv[1] : "";
  const auto wanted = [&](std::string_view part) { return only.empty() || only == part; };
  if (wanted("memory")) {
    Memory("10m", 10'000'000, weir::KeyStorage::kFingerprint);
    Memory("10m.text", 10'000'000, weir::KeyStorage::kText);
    Memory("50m", 50'000'000, weir::KeyStorage::kFingerprint);
  }
  if (wanted("latency")) Latency();
  if (wanted("tracking")) Tracking();
  if (wanted("eviction")) Eviction();
  if (wanted("denied")) Denied();
  if (wanted("1key")) Throughput("1key", 1);
  if (wanted("10k")) Throughput("10k", 10'000);
  if (wanted("1m")) Throughput("1m", 1'000'000);
  if (wanted("strings")) Strings();
  if (wanted("10m")) Throughput("10m", 10'000'000);
}
