#pragma once

// A list of the keys that a store holds, for people. It is read page by page and shows what was
// there when each page was read: keys come and go in the meantime.

#include <cstddef>
#include <string>
#include <vector>

#include "weir/quota.h"

namespace weir::store {

/// One key as a store names it (policy/keys.h), under one algorithm.
struct HeldKey {
  std::string key;
  Algorithm algorithm;

  friend auto operator<=>(const HeldKey&, const HeldKey&) = default;  // NOLINT: no pointer here
};

struct KeyQuery {
  std::string cursor = {};  ///< KeyPage::next of the page before; empty: from the beginning
  std::string prefix = {};  ///< only keys that begin with this
  std::size_t limit = 100;
};

struct KeyPage {
  /// Sorted. About as many as requested, or fewer: the search for them is bounded.
  std::vector<HeldKey> keys = {};
  std::string next = {};  ///< empty: this is the last page
};

/// A string that sorts before every key with this prefix and after all keys that sort before the
/// prefix: keys are UTF-8, so none begins with the string that is made here.
inline std::string JustBefore(std::string prefix) {
  if (prefix.empty()) return prefix;
  const char last = prefix.back();
  prefix.pop_back();
  if (last != 0) prefix.append(1, static_cast<char>(last - 1)).append(4, '\xff');
  return prefix;
}

}  // namespace weir::store
