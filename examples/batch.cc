// A thousand requests of ten clients, decided in one call. Each client may make 60 a day; client 0
// pays for a higher limit.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include "weir/engine.h"

int main() {
  const auto standard = weir::Quota::SlidingCounter(60, std::chrono::hours(24));
  const auto premium = weir::Quota::SlidingCounter(90, std::chrono::hours(24));
  if (!standard || !premium) return 1;
  weir::Engine engine(*standard, {.max_keys = 10'000});
  engine.SetQuota("client-0", *premium);

  std::vector<std::string> keys(1000);
  std::vector<weir::Ask> asks(keys.size());
  std::vector<weir::Decision> decisions(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = "client-" + std::to_string(i % 10);
    asks[i].key = keys[i];
  }
  engine.TryAcquireBatch(asks, decisions);

  const auto allowed = std::count_if(decisions.begin(), decisions.end(),
                                     [](const weir::Decision& d) { return d.allowed(); });
  std::cout << allowed << " of " << decisions.size() << " allowed\n";
  std::cout << "client-0 has " << engine.Peek("client-0").remaining << " of "
            << engine.Peek("client-0").limit << " left\n";
}
