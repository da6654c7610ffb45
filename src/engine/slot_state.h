#pragma once

// How a key's state is stored in its slot: a token bucket inline, unless it ever had reservations,
// and everything else in a box. All changes go through SetInlineState or Settle, so that none is
// missing in a journal.

#include <algorithm>
#include <cstdint>

#include "algorithm/state.h"
#include "algorithm/token_bucket.h"
#include "engine/shard.h"

namespace weir::engine {

inline algorithm::TokenBucketState InlineState(const Slot& slot) noexcept {
  return {slot.word, slot.extra};
}

inline void SetInlineState(Shard& shard, const Shard::Place& place,
                           const algorithm::TokenBucketState& state) {
  place.slot().word = state.full_at;
  place.slot().extra = state.frac;
  shard.MarkChanged(place);
}

// Stores what a step left in `state` and keeps the box's size in proportion to it.
inline void Settle(Shard& shard, const Shard::Place& place, const algorithm::State& state) {
  Box* box = place.box();
  box->set_size(state.size);
  place.slot().extra = CoarseTime(algorithm::FreshAt(box->algorithm(), box->state()));
  constexpr std::uint32_t kSmallBox = 64;
  if (box->capacity() > kSmallBox && box->size() < box->capacity() / 4) {
    place.set_box(Box::Resized(box, std::max(kSmallBox, box->size() * 2)));
  }
  shard.MarkChanged(place);
}

inline void GrowFor(const Shard::Place& place, std::uint32_t capacity) {
  Box* box = place.box();
  if (box->capacity() >= capacity) return;
  // By an eighth, so that little space is unused: boxes dominate the memory of keys. Moving one
  // costs next to nothing compared to the charges that it took to fill it.
  place.set_box(Box::Resized(box, std::max(capacity, box->capacity() + box->capacity() / 8)));
}

}  // namespace weir::engine
