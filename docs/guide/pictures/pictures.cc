// Drives the engine with one minute of made-up traffic under each algorithm, on a clock of its own,
// and prints a line "algorithm,milliseconds,admitted" per request. draw.py makes the pictures of
// docs/guide/choosing-an-algorithm.md from it.

#include <weir/engine.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string_view>

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only
using std::chrono::nanoseconds;
using weir::Quota;

/// So many requests a second until a moment.
struct Phase {
  nanoseconds until;
  int per_second;
};

// Quiet, a burst across the edge of a ten-second window, overload, quiet again, a burst, overload.
constexpr Phase kTraffic[] = {{8s, 4}, {12s, 50}, {26s, 16}, {38s, 2}, {41s, 50}, {60s, 16}};

/// How long a request takes: the service behind the limit slows down at the end.
nanoseconds Duration(nanoseconds now) { return now < 48s ? nanoseconds(800ms) : nanoseconds(3s); }

/// Gives back leases as the requests that hold them end. Not thread-safe.
class InFlight {
 public:
  InFlight(weir::Engine& engine, weir::ManualClock& clock) : engine_(engine), clock_(clock) {}

  void Begin(std::int64_t lease) {
    const nanoseconds now(clock_.Now());
    ends_.emplace(now + Duration(now), lease);
  }
  void EndUntil(nanoseconds now) {
    for (; !ends_.empty() && ends_.begin()->first <= now; ends_.erase(ends_.begin())) {
      clock_.Set(ends_.begin()->first.count());
      engine_.Release("key", ends_.begin()->second);
    }
  }

 private:
  weir::Engine& engine_;
  weir::ManualClock& clock_;
  std::multimap<nanoseconds, std::int64_t> ends_;
};

void Run(std::string_view name, const Quota& quota) {
  weir::ManualClock clock(0);
  weir::Engine engine(quota, {.max_keys = 16, .clock = &clock});
  InFlight in_flight(engine, clock);
  nanoseconds now(0);
  for (const Phase& phase : kTraffic) {
    for (; now < phase.until; now += nanoseconds(1s) / phase.per_second) {
      in_flight.EndUntil(now);
      clock.Set(now.count());
      const weir::Decision decision = engine.TryAcquire("key");
      if (decision.lease != 0) in_flight.Begin(decision.lease);
      std::printf("%.*s,%lld,%d\n", static_cast<int>(name.size()), name.data(),
                  static_cast<long long>(now / 1ms), decision.allowed() ? 1 : 0);
    }
  }
}

}  // namespace

int main() {
  Run("token_bucket", Quota::TokenBucket(100, 10, 1s).value());
  Run("fixed_window", Quota::FixedWindow(100, 10s).value());
  Run("sliding_log", Quota::SlidingLog(100, 10s).value());
  Run("sliding_counter", Quota::SlidingCounter(100, 10s, 2).value());
  Run("concurrency", Quota::Concurrency(10, 30s).value());
}
