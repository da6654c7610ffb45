// The same with policies from a file: installed with its component, linked with weir::stores.

#include <weir/limiter.h>

#include <chrono>
#include <iostream>

int main(int, char** argv) {
  auto limiter = weir::Limiter::Open(
      {.store = argv[1], .policies = {argv[2]}, .timeout = std::chrono::seconds(5)});
  if (!limiter) {
    std::cerr << limiter.error().message << '\n';
    return 1;
  }
  for (int i = 0; i < 3; ++i) {
    const auto answer = limiter->Check("alice");
    if (!answer) {
      std::cerr << answer.error().message << '\n';
      return 1;
    }
    std::cout << (answer->allowed() ? "allowed" : "limited") << ", " << answer->decision.remaining
              << " left\n";
  }
}
