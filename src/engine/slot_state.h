#pragma once

// How a key's state lies in its slot: a token bucket inline, everything else in a box.

#include <algorithm>
#include <cstdint>

#include "algorithm/state.h"
#include "algorithm/token_bucket.h"
#include "engine/shard.h"

namespace weir::engine {

inline algorithm::TokenBucketState InlineState(const Slot& slot) noexcept {
  return {slot.word, slot.extra};
}

inline void SetInlineState(Slot& slot, const algorithm::TokenBucketState& state) noexcept {
  slot.word = state.full_at;
  slot.extra = state.frac;
}

// Takes over what a step left of `state` and keeps the box's size in proportion to it.
inline void Settle(const Shard::Place& place, const algorithm::State& state) {
  Box* box = place.box();
  box->set_size(state.size);
  place.slot().extra = CoarseTime(algorithm::FreshAt(box->algorithm(), box->state()));
  constexpr std::uint32_t kSmallBox = 64;
  if (box->capacity() > kSmallBox && box->size() < box->capacity() / 4) {
    place.set_box(Box::Resized(box, std::max(kSmallBox, box->size() * 2)));
  }
}

inline void GrowFor(const Shard::Place& place, std::uint32_t capacity) {
  Box* box = place.box();
  if (box->capacity() >= capacity) return;
  place.set_box(Box::Resized(box, std::max(capacity, box->capacity() + box->capacity() / 2)));
}

}  // namespace weir::engine
