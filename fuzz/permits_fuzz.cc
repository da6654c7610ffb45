// The text that identifies permits: it is refused or stands for bounded permits, and what is
// written for those is read as the same.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "limiter/limiter.h"
#include "limiter/permits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<weir::limiter::Permit> permits = {{1, 1}};
  if (!weir::limiter::ParsePermits(text, permits).ok()) {
    if (!permits.empty()) __builtin_trap();
    return 0;
  }
  if (permits.empty() || permits.size() > weir::limiter::kMaxPermits) __builtin_trap();
  // A bucket's tag cannot be chosen, so only the leases are written as they were read.
  weir::limiter::Check check;
  for (std::size_t i = 0; i < permits.size(); ++i) {
    weir::limiter::PolicyVerdict verdict;
    verdict.key = text.substr(0, i);  // a different one for each
    verdict.decision.lease = permits[i].lease;
    check.verdicts.push_back(verdict);
  }
  std::string written;
  weir::limiter::AppendPermits(written, check);
  std::vector<weir::limiter::Permit> read;
  if (!weir::limiter::ParsePermits(written, read).ok() || read.size() != permits.size()) {
    __builtin_trap();
  }
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i].lease != permits[i].lease) __builtin_trap();
  }
  return 0;
}
