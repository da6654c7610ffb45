#pragma once

// What check, reserve, explain and reset are about: a key, or the entries of a descriptor.

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

  /// Nothing wrong with them; else says so.
  bool Valid() const;

  /// The body of a check; `more` are further fields, each with a comma before it.
  std::string CheckBody(std::int64_t cost,
                        std::optional<std::int64_t> expires_after_ms = std::nullopt) const;

  /// "&domain=api&user=42", for a query of the admin API; the key is not in it.
  std::string EntryQuery() const;
};

}  // namespace weir::app
