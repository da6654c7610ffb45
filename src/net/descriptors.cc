#include "net/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

namespace weir::net {

DescriptorBudget FitToDescriptors(std::size_t connections) noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {0, connections};
  const rlim_t wanted = connections + kReservedDescriptors;
  if (limit.rlim_cur < wanted) {
    const rlimit raised{std::min(wanted, limit.rlim_max), limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const std::size_t now = limit.rlim_cur;
  // With a limit so low that the reserve does not fit, half of it is kept.
  const std::size_t kept = std::min(kReservedDescriptors, now / 2);
  return {now, std::min(connections, now - kept)};
}

}  // namespace weir::net
