#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "slots/slot.h"
#include "weir/clock.h"

namespace weir::slots {

/// Active configs as they were at most five seconds ago, for reading. Assigning does not use it:
/// the store itself knows the active version, so no process ever fills windows by an old one.
///
/// Thread-safe.
class ConfigCache {
 public:
  static constexpr std::chrono::seconds kLifetime{5};
  static constexpr std::size_t kMaxConfigs = 10'000;

  explicit ConfigCache(const Clock& clock) : clock_(clock) {}

  std::optional<Config> Get(const std::string& name);
  void Put(Config config);
  void Forget(const std::string& name);
  /// Returns how many entries there were.
  std::size_t Flush();

 private:
  struct Entry {
    Config config;
    Nanos expires = 0;
  };

  const Clock& clock_;
  std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace weir::slots
