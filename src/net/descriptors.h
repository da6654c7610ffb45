#pragma once

#include <cstddef>

namespace weir::net {

/// File descriptors that connections never take: for files, stores, brokers, listeners and requests
/// that are always answered.
inline constexpr std::size_t kReservedDescriptors = 512;

/// What the limit on file descriptors (`ulimit -n`) leaves for connections.
struct DescriptorBudget {
  std::size_t limit = 0;        ///< as it is now
  std::size_t connections = 0;  ///< at most what was wanted
};

/// Raises this process's limit on file descriptors as far as it is allowed to and `connections`
/// need it. Not thread-safe: call it at startup.
DescriptorBudget FitToDescriptors(std::size_t connections) noexcept;

}  // namespace weir::net
