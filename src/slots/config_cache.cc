#include "slots/config_cache.h"

#include <utility>

namespace weir::slots {

std::optional<Config> ConfigCache::Get(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.expires <= clock_.Now()) return std::nullopt;
  return found->second.config;
}

void ConfigCache::Put(Config config) {
  const Nanos expires = clock_.Now() + std::chrono::nanoseconds(kLifetime).count();
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= kMaxConfigs) entries_.clear();
  std::string name = config.name;
  entries_[std::move(name)] = {std::move(config), expires};
}

void ConfigCache::Forget(const std::string& name) {
  const std::lock_guard lock(mutex_);
  entries_.erase(name);
}

std::size_t ConfigCache::Flush() {
  const std::lock_guard lock(mutex_);
  const std::size_t count = entries_.size();
  entries_.clear();
  return count;
}

}  // namespace weir::slots
