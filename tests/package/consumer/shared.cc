// The same with limits that several processes share: installed with its component, linked with
// weir::stores.

#include <weir/shared_limiter.h>

#include <chrono>
#include <future>
#include <iostream>

int main(int, char** argv) {
  auto limiter = weir::SharedLimiter::Open(argv[1], {.timeout = std::chrono::seconds(5)});
  if (!limiter) {
    std::cerr << limiter.error().message << '\n';
    return 1;
  }
  const weir::Quota quota = *weir::Quota::FixedWindow(2, std::chrono::hours(24) * 3650);
  std::promise<weir::Result<weir::Decision>> later;
  limiter->TryAcquireAsync("alice", quota, 1, [&later](weir::Result<weir::Decision> decision) {
    later.set_value(std::move(decision));
  });
  for (const auto& decision : {later.get_future().get(), limiter->TryAcquire("alice", quota),
                               limiter->TryAcquire("alice", quota)}) {
    if (!decision) {
      std::cerr << decision.error().message << '\n';
      return 1;
    }
    std::cout << (decision->allowed() ? "allowed" : "limited") << ", " << decision->remaining
              << " left\n";
  }
}
