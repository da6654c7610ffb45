#pragma once

#include <cstdio>
#include <string>

namespace weir::bench {

/// Prints one figure of the benchmark.
inline void Figure(const std::string& name, double value, const char* unit) {
  std::printf("figure %s %.*f %s\n", name.c_str(), value < 100 ? 2 : 0, value, unit);
  std::fflush(stdout);
}

}  // namespace weir::bench
