// Each user may send three messages at once and earns one more every hour.

#include <chrono>
#include <initializer_list>
#include <iostream>
#include <string_view>

#include "weir/engine.h"

int main() {
  const auto quota = weir::Quota::TokenBucket(3, 1, std::chrono::hours(1));
  if (!quota) {
    std::cerr << quota.error().message << '\n';
    return 1;
  }
  weir::Engine engine(*quota);

  for (const std::string_view user : {"ann", "ann", "bob", "ann", "ann"}) {
    const weir::Decision decision = engine.TryAcquire(user);
    if (decision.allowed()) {
      std::cout << user << ": sent, " << decision.remaining << " left\n";
    } else {
      const auto wait = std::chrono::ceil<std::chrono::minutes>(decision.retry_after);
      std::cout << user << ": limited, try again in " << wait.count() << " minutes\n";
    }
  }
}
