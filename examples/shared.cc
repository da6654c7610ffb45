// Several processes share one limit through a store: start it several times in parallel; together
// they run at most ten jobs in any hour. Argument: the URL of a Redis, PostgreSQL, MySQL or MariaDB
// server.

#include <chrono>
#include <iostream>

#include "weir/shared_limiter.h"

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " redis://host:6379\n";
    return 2;
  }
  auto limiter = weir::SharedLimiter::Open(argv[1], {.timeout = 1s});
  if (!limiter) {
    std::cerr << limiter.error().message << '\n';
    return 1;
  }
  const weir::Quota quota = *weir::Quota::SlidingLog(10, 1h);
  for (int i = 0; i < 12; ++i) {
    const weir::Result<weir::Decision> decision = limiter->TryAcquire("jobs", quota);
    if (!decision) {
      std::cout << "undecided: " << decision.error().message << '\n';
    } else if (decision->allowed()) {
      std::cout << "job done, " << decision->remaining << " left\n";
    } else {
      std::cout << "no more this hour\n";
    }
  }
}
