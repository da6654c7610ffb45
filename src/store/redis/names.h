#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/key_spread.h"
#include "store/key_list.h"
#include "weir/quota.h"

namespace weir::store::redis {

/// How keys are named in Redis: prefix, in a cluster a hash tag, the key, and one letter for the
/// algorithm, so that a key has one state under each. A log's entries are in a list with that name
/// and an appended "e".
///
/// Thread-safe: immutable.
class Names {
 public:
  /// `tagged`: for a cluster. `tag_entry`: see Options. `places`: of Options::spread, or null.
  Names(std::string prefix, bool tagged, std::string tag_entry,
        std::shared_ptr<const KeyPlaces> places = nullptr)
      : prefix_(std::move(prefix)),
        tagged_(tagged),
        tag_entry_(std::move(tag_entry)),
        places_(std::move(places)) {}

  /// The same with other places.
  Names At(std::shared_ptr<const KeyPlaces> places) const {
    return {prefix_, tagged_, tag_entry_, std::move(places)};
  }
  bool tagged_by_entry() const noexcept { return !tag_entry_.empty(); }
  const std::shared_ptr<const KeyPlaces>& places() const noexcept { return places_; }

  /// What decides the slot of a key, a function of the key alone:
  ///   "{t}…"                         t: the client that names keys may choose it
  ///   "cl|…"                         the key itself: these are never charged together with others
  ///   "domain/policy|entry:value|…"  the domain; with tag_entry also the value of that entry
  ///   anything else                  the text before the first "/" or "|", or nothing
  /// With places, their entry for a policy's keys; bare keys ("key|…") and quotas that came with a
  /// request ("domain/%override…") use their whole text. What does not go by its domain has one of
  /// 12 tags, whose slots are evenly spaced. A reservation's record has the tag of its key.
  std::string Tag(std::string_view key) const;

  /// Appends the name of `key`'s state.
  void Append(std::string_view key, Algorithm algorithm, std::string& out) const;
  /// The key whose state has this name; nothing if there is none.
  std::optional<HeldKey> Parse(std::string_view name) const;

 private:
  std::string PlacedTag(std::string_view key) const;

  std::string prefix_;
  bool tagged_;
  std::string tag_entry_;
  std::shared_ptr<const KeyPlaces> places_;
};

}  // namespace weir::store::redis
