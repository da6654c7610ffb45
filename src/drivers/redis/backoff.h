#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace weir::redis {

/// How long to wait before trying to connect again: doubles with every failure, less a random
/// share of up to a half, so that clients who lost the same server do not return together.
///
/// Not thread-safe.
class Backoff {
 public:
  using Delay = std::chrono::microseconds;

  Backoff(Delay first, Delay longest) : first_(first), longest_(longest) {}

  Delay Next() {
    const Delay delay = std::min(longest_, first_ * (1 << std::min(failures_, 16)));
    ++failures_;
    std::uniform_int_distribution<Delay::rep> share(delay.count() / 2, delay.count());
    return Delay(share(random_));
  }
  void Reset() noexcept { failures_ = 0; }

 private:
  Delay first_;
  Delay longest_;
  int failures_ = 0;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace weir::redis
