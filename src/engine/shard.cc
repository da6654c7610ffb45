#include "engine/shard.h"

#include <algorithm>
#include <utility>

namespace weir::engine {

namespace {

constexpr std::uint8_t kStuck = 255;
// Shards up to this many buckets are searched whole for a victim; larger ones in stretches.
constexpr std::uint32_t kSmallShard = 64;
constexpr std::uint32_t kStretch = 16;
// The epoch advances this many times while a shard's worth of keys is inserted.
constexpr std::uint32_t kEpochsPerTurnover = 16;

}  // namespace

Shard::Place Shard::Insert(const Fingerprint& f, bool boxed) noexcept {
  constexpr std::uint8_t kAllUsed = (1U << Bucket::kSlots) - 1;
  Bucket* bucket = HomeOf(f);
  for (; bucket->used == kAllUsed; bucket = Next(bucket)) {
    if (bucket->overflow != kStuck) ++bucket->overflow;
  }
  int i = 0;
  while (bucket->Has(i)) ++i;
  const auto bit = static_cast<std::uint8_t>(1U << i);
  bucket->used |= bit;
  if (boxed) bucket->boxed |= bit;
  bucket->slots[i] = {f.high, f.low, 0, 0};
  if (++inserts_ > live_ / kEpochsPerTurnover) {
    inserts_ = 0;
    epoch_ = static_cast<std::uint8_t>((epoch_ + 1) & Bucket::kEpoch);
  }
  bucket->stamp[i] = epoch_;
  ++live_;
  return {bucket, i};
}

Shard::Place Shard::Probe(Bucket* home, const Fingerprint& f) const noexcept {
  Bucket* bucket = home;
  for (std::uint32_t probes = 0; probes < bucket_count_; ++probes) {
    for (int i = 0; i < Bucket::kSlots; ++i) {
      const Place place{bucket, i};
      if (place.Holds(f)) return place;
    }
    if (bucket->overflow == 0) return {};
    bucket = Next(bucket);
  }
  return {};
}

Shard::Place Shard::FindElsewhere(Bucket* home, const Fingerprint& f) noexcept {
  return FindFrom(home, f);
}

std::string_view Shard::TextOf(const Place& place) const noexcept {
  if (place.boxed()) return place.box()->key();
  const KeyText* text = texts_ == nullptr ? nullptr : TextAt(place);
  return text == nullptr ? std::string_view() : text->view();
}

void Shard::Prefetch(std::span<const Place> places) const noexcept {
  for (const Place& place : places) {
    const auto* bucket = reinterpret_cast<const char*>(place.bucket);
    __builtin_prefetch(bucket, 1);
    __builtin_prefetch(bucket + 64, 1);
    if (texts_ != nullptr) __builtin_prefetch(&TextAt(place));
  }
  for (const Place& place : places) {
    const void* heap = place.boxed() ? static_cast<const void*>(place.box()) : nullptr;
    if (heap == nullptr && texts_ != nullptr) heap = TextAt(place);
    __builtin_prefetch(heap);
  }
}

void Shard::MoveInto(const Place& place, Box* box) noexcept {
  FreeHeap(place);
  place.bucket->boxed |= static_cast<std::uint8_t>(1U << place.index);
  place.set_box(box);
}

// Frees everything that the key has on the heap.
void Shard::FreeHeap(const Place& place) noexcept {
  if (place.boxed()) {
    Box::Free(place.box());
  } else if (texts_ != nullptr) {
    KeyText::Free(std::exchange(TextAt(place), nullptr));
  }
}

void Shard::Erase(const Place& place) noexcept {
  FreeHeap(place);
  for (Bucket* b = HomeOf(place.slot().fingerprint()); b != place.bucket; b = Next(b)) {
    if (b->overflow != kStuck) --b->overflow;
  }
  const auto keep = static_cast<std::uint8_t>(~(1U << place.index));
  place.bucket->used &= keep;
  place.bucket->boxed &= keep;
  place.slot() = {};
  --live_;
}

std::uint32_t Shard::Clear() noexcept {
  const std::uint32_t erased = live_;
  if (erased == 0) return 0;  // does not touch memory that was never used
  ForEach([this](const Place& place) { FreeHeap(place); });
  std::fill(buckets_, buckets_ + bucket_count_, Bucket{});
  live_ = 0;
  return erased;
}

void Shard::AddChange(const Place& place) {
  place.bucket->stamp[place.index] |= Bucket::kChanged;
  if (changes->places.empty() && changes->forgotten.empty()) {
    changes->shards->fetch_or(changes->bit, std::memory_order_release);
  }
  changes->places.push_back(place);
}

void Shard::MarkForgotten(const Fingerprint& f) {
  if (changes == nullptr) return;
  if (changes->places.empty() && changes->forgotten.empty()) {
    changes->shards->fetch_or(changes->bit, std::memory_order_release);
  }
  changes->forgotten.push_back(f);
}

bool Shard::IsFresh(const Place& place, Nanos now) noexcept {
  const Slot& slot = place.slot();
  if (!place.boxed()) return slot.word < now || (slot.word == now && slot.extra == 0);
  const std::uint32_t coarse_now = CoarseTime(now);
  if (slot.extra != coarse_now) return slot.extra < coarse_now;
  return algorithm::FreshAt(place.box()->algorithm(), place.box()->state()) <= now;
}

Shard::Victim Shard::FindVictim(Nanos now, std::span<const Fingerprint> pinned) noexcept {
  Victim victim;
  int oldest = -1;
  const std::uint32_t stretch = bucket_count_ <= kSmallShard ? bucket_count_ : kStretch;
  for (std::uint32_t n = 0; n < bucket_count_; ++n) {
    if (n >= stretch && victim.place) break;
    Bucket* bucket = buckets_ + hand_;
    hand_ = hand_ + 1 == bucket_count_ ? 0 : hand_ + 1;
    for (int i = 0; i < Bucket::kSlots; ++i) {
      if (!bucket->Has(i)) continue;
      const Place place{bucket, i};
      if (std::ranges::find(pinned, place.slot().fingerprint()) != pinned.end()) continue;
      if (IsFresh(place, now)) return {place, true};
      const int age = (epoch_ - bucket->stamp[i]) & Bucket::kEpoch;
      if (age > oldest) {
        oldest = age;
        victim.place = place;
      }
    }
  }
  return victim;
}

}  // namespace weir::engine
