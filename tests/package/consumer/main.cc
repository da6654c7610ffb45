// A program outside of the project: all it has of Weir is the installed package.

#include <weir/clock.h>
#include <weir/decision.h>
#include <weir/engine.h>
#include <weir/quota.h>
#include <weir/result.h>

#include <chrono>
#include <iostream>

int main() {
  const weir::ManualClock clock;
  const auto quota = weir::Quota::FixedWindow(2, std::chrono::minutes(1));
  if (!quota) {
    std::cerr << quota.error().message << '\n';
    return 1;
  }
  weir::Engine engine(*quota, {.max_keys = 1000, .clock = &clock});
  for (int i = 0; i < 3; ++i) {
    const weir::Decision decision = engine.TryAcquire("alice");
    std::cout << (decision.allowed() ? "allowed" : "limited") << ", " << decision.remaining
              << " left\n";
  }
}
