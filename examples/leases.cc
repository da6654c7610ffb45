// At most two exports at a time per account. If an export dies without releasing its permit,
// the permit is free again after ten minutes. A manual clock skips the minutes.

#include <chrono>
#include <iostream>

#include "weir/engine.h"

int main() {
  const auto quota = weir::Quota::Concurrency(2, std::chrono::minutes(10));
  if (!quota) return 1;
  weir::ManualClock clock;
  weir::Engine engine(*quota, {.clock = &clock});

  const weir::Decision first = engine.TryAcquire("acme");
  const weir::Decision second = engine.TryAcquire("acme");
  std::cout << "two run: " << first.allowed() << second.allowed() << '\n';
  std::cout << "a third may: " << engine.TryAcquire("acme").allowed() << '\n';

  std::cout << "the first ends: " << engine.Release("acme", first.lease) << '\n';
  std::cout << "and ends again: " << engine.Release("acme", first.lease) << '\n';
  std::cout << "a third may: " << engine.TryAcquire("acme").allowed() << '\n';

  clock.Advance(std::chrono::minutes(11));
  std::cout << "eleven minutes later: " << engine.Peek("acme").remaining << " free\n";
  std::cout << "the second ends, too late: " << engine.Release("acme", second.lease) << '\n';
}
