#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/key_list.h"
#include "weir/quota.h"

namespace weir::store::redis {

/// What keys are called in Redis: prefix, in a cluster a hash tag, the key, and one letter for the
/// algorithm, so that a key has one state under each. A log's entries stand in a list whose name is
/// that with an "e".
///
/// Thread-safe: immutable.
class Names {
 public:
  /// `tagged`: for a cluster. `tag_entry`: see Options.
  Names(std::string prefix, bool tagged, std::string tag_entry)
      : prefix_(std::move(prefix)), tagged_(tagged), tag_entry_(std::move(tag_entry)) {}

  /// What decides the slot of a key, a function of the key alone:
  ///   "{t}…"                         t: whoever names keys may say so
  ///   "cl|…"                         the key itself: these are never charged together with others
  ///   "domain/policy|entry:value|…"  the domain; with tag_entry also the value of that entry
  ///   anything else                  what stands before the first "/" or "|", or nothing
  std::string Tag(std::string_view key) const;

  /// Appends the name of `key`'s state.
  void Append(std::string_view key, Algorithm algorithm, std::string& out) const;
  /// The key whose state has this name; nothing if none has.
  std::optional<HeldKey> Parse(std::string_view name) const;

 private:
  std::string prefix_;
  bool tagged_;
  std::string tag_entry_;
};

}  // namespace weir::store::redis
