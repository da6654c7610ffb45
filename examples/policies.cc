// Policies inside a program: files define the limits, and may change while it runs.
// Arguments: the policy files.

#include <iostream>
#include <string>
#include <vector>

#include "weir/limiter.h"

namespace {

void Show(const std::string& what, const weir::Result<weir::LimitAnswer>& answer) {
  std::cout << what << ": ";
  if (!answer) {
    std::cout << "undecided: " << answer.error().message << '\n';
  } else if (answer->allowed()) {
    std::cout << "allowed by " << answer->policy << ", " << answer->decision.remaining << " left\n";
  } else {
    std::cout << "limited by " << answer->policy << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " policies.yaml…\n";
    return 2;
  }
  weir::LimiterOptions options;
  options.policies = std::vector<std::string>(argv + 1, argv + argc);
  auto limiter = weir::Limiter::Open(options);
  if (!limiter) {
    std::cerr << limiter.error().message << '\n';
    return 1;
  }
  const std::vector<weir::LimitEntry> pay = {{"user", "42"}, {"route", "/v1/pay"}};
  const std::vector<weir::LimitEntry> read = {{"user", "42"}, {"route", "/v1/read"}};
  for (int i = 0; i < 3; ++i) Show("pay", limiter->Check({.domain = "api", .entries = pay}));
  Show("read", limiter->Check({.domain = "api", .entries = read}));
  Show("bare key", limiter->Check("somebody"));
}
