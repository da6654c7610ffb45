#pragma once

// The subject of check, reserve, explain and reset: a key, or the entries of a descriptor.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "syntax.h"

namespace weir::app {

/// Not thread-safe, like any value.
struct SubjectWords {
  std::string key = {};
  std::string domain = {};
  std::vector<std::string> entries = {};

  void AddTo(Syntax word, const std::string& about_key);

  /// True if they are valid; else prints why not. Notes a key that looks like an entry.
  bool Valid() const;

  /// What a body may contain besides its subject and the cost.
  struct More {
    std::optional<std::int64_t> expires_after_ms = std::nullopt;
    bool overdraw = false;
  };
  /// The body of a check or a reservation.
  std::string CheckBody(std::int64_t cost, const More& more) const;

  /// "&domain=api&user=42", for a query of the admin API; the key is not in it.
  std::string EntryQuery() const;
};

}  // namespace weir::app
