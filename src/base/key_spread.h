#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_map.h"

namespace weir {

/// Which part of a key's text decides where the key is stored, where keys that are charged together
/// must be stored together: docs/adr/0013-spread-by-policies.md.
struct KeyPlace {
  /// The key is never charged together with another: its whole text decides.
  bool whole = false;
  /// Otherwise its domain and the values of these entries decide, named as in keys.
  std::vector<std::string> entries = {};

  friend bool operator==(const KeyPlace&, const KeyPlace&) = default;
};

/// Keyed by what the keys of a policy begin with: "domain/policy". Keys of other policies are
/// placed by their domain.
using KeyPlaces = TextMap<KeyPlace>;

/// The places in force, replaced as a whole when policies change. Thread-safe.
class KeySpread {
 public:
  void Publish(KeyPlaces next) {
    const std::lock_guard lock(mutex_);
    if (current_ != nullptr && *current_ == next) return;  // keys stay where they are
    current_ = std::make_shared<const KeyPlaces>(std::move(next));
  }
  /// Null if nothing has been published yet.
  std::shared_ptr<const KeyPlaces> Current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const KeyPlaces> current_;
};

}  // namespace weir
