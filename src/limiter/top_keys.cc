#include "limiter/top_keys.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>
#include <utility>

namespace weir::limiter {
namespace {

constexpr Nanos kSliceNanos = TopKeys::kSliceSeconds * 1'000'000'000;
constexpr std::size_t kHashDigits = 16;

}  // namespace

KeySampler::KeySampler()
    : random_(0x9e3779b9U), ring_(std::make_unique_for_overwrite<std::array<Sample, kSlots>>()) {}

std::uint32_t KeySampler::Random() noexcept {
  random_ ^= random_ << 13U;
  random_ ^= random_ >> 17U;
  random_ ^= random_ << 5U;
  return random_;
}

void KeySampler::Take(std::string_view key, std::uint32_t policy, Outcome outcome) noexcept {
  const std::uint64_t at = written_.load(std::memory_order_relaxed);
  const std::uint64_t held = at - read_.load(std::memory_order_acquire);
  // The next gap is random, so that periodic traffic cannot evade sampling, and grows as the ring
  // fills, so that a sudden flood is still seen in part.
  const std::uint64_t stride = std::uint64_t{stride_.load(std::memory_order_relaxed)}
                               << (3 * (4 * held / kSlots));
  const auto gap = static_cast<std::uint32_t>(
      stride == 1 ? 1 : 1 + Random() % std::min<std::uint64_t>(2 * stride - 1, ~std::uint32_t{0}));
  countdown_ = gap;
  const std::uint32_t weight = std::exchange(skipped_, gap);
  if (held == kSlots) return;
  Sample& sample = (*ring_)[at % kSlots];
  sample.policy = policy;
  sample.weight = weight;
  sample.outcome = outcome;
  sample.size = static_cast<std::uint8_t>(std::min(key.size(), kMaxText));
  std::memcpy(sample.text.data(), key.data(), sample.size);
  if (key.size() > kMaxText) {
    constexpr char kHex[] = "0123456789abcdef";
    std::uint64_t hash = std::hash<std::string_view>{}(key);
    char* tail = sample.text.data() + kMaxText - kHashDigits;
    tail[-1] = '~';
    for (std::size_t i = 0; i < kHashDigits; ++i, hash >>= 4U) tail[i] = kHex[hash & 15U];
  }
  written_.store(at + 1, std::memory_order_release);
}

std::shared_ptr<KeySampler> TopKeys::Add() {
  auto sampler = std::make_shared<KeySampler>();
  const std::lock_guard lock(mutex_);
  samplers_.push_back(sampler);
  return sampler;
}

void TopKeys::Collect(Nanos now) {
  const std::int64_t number = now / kSliceNanos;
  const std::lock_guard lock(mutex_);
  Slice& slice = slices_[static_cast<std::size_t>(number) % kSlices];
  if (slice.number != number) {
    slice.number = number;
    slice.hot.Clear();
    slice.limited.Clear();
    slice.shadow.Clear();
  }
  for (const auto& sampler : samplers_) {
    sampler->Drain([&slice](const KeySampler::Sample& sample) {
      const std::string_view text(sample.text.data(), sample.size);
      if (sample.outcome == Outcome::kShadow) {
        return slice.shadow.Add(text, sample.weight, sample.policy);
      }
      slice.hot.Add(text, sample.weight, sample.policy);
      if (sample.outcome == Outcome::kLimited) {
        slice.limited.Add(text, sample.weight, sample.policy);
      }
    });
  }
}

std::vector<TopKeys::Key> TopKeys::Top(Kind kind, std::size_t n, Nanos now) const {
  const std::int64_t number = now / kSliceNanos;
  const std::lock_guard lock(mutex_);
  std::unordered_map<std::string_view, Key> sums;
  std::vector<std::pair<const telemetry::SpaceSaving*, std::uint64_t>> parts;  // with their floors
  for (const Slice& slice : slices_) {
    if (slice.number < 0 || slice.number <= number - static_cast<std::int64_t>(kSlices)) continue;
    const telemetry::SpaceSaving& part = slice.Of(kind);
    parts.emplace_back(&part, part.floor());
    for (const auto& entry : part.entries()) sums[entry.text].policy = entry.tag;
  }
  std::vector<Key> keys;
  for (auto& [text, key] : sums) {
    key.key = text;
    for (const auto& [part, floor] : parts) {
      const auto* entry = part->Find(text);
      // A key missing from a sketch may have occurred as often as the rarest one in it.
      key.count += entry != nullptr ? entry->count : floor;
      key.error += entry != nullptr ? entry->error : floor;
    }
    keys.push_back(std::move(key));
  }
  const auto more = [](const Key& a, const Key& b) {
    const std::uint64_t sure_a = a.count - a.error;
    const std::uint64_t sure_b = b.count - b.error;
    if (sure_a != sure_b) return sure_a > sure_b;
    return a.count != b.count ? a.count > b.count : a.key < b.key;
  };
  n = std::min(n, keys.size());
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(n), keys.end(), more);
  keys.resize(n);
  return keys;
}

}  // namespace weir::limiter
