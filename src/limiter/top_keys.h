#pragma once

// Which keys are checked and refused most, in fixed memory whatever the number of keys. A limiter
// puts samples of its checks into a ring of its own, without a lock; once a second they are counted
// in sketches of ten seconds each, of which the last six make up the answer. While checks are few,
// each is a sample; the more there are, the fewer are taken, each standing for several.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/space_saving.h"
#include "weir/clock.h"

namespace weir::limiter {

/// The result of a check for a bucket. kShadow is counted in addition to one of the others: a
/// policy on trial would have refused the check.
enum class Outcome : std::uint8_t { kAllowed, kLimited, kShadow };

/// One limiter's samples.
///
/// Thread safety: one thread calls Note; one other thread at a time calls Drain.
class KeySampler {
 public:
  static constexpr std::size_t kSlots = 4096;
  /// Longer keys are cut, and distinguished by a hash at their end.
  static constexpr std::size_t kMaxText = 200;

  /// Without initial values: a ring of them takes memory only as far as it has been used.
  struct Sample {
    std::uint32_t policy;
    std::uint32_t weight;  ///< how many checks it stands for
    Outcome outcome;
    std::uint8_t size;
    std::array<char, kMaxText> text;
  };

  KeySampler();

  /// Counts one check; cheap unless it is taken as a sample.
  void Note(std::string_view key, std::uint32_t policy, Outcome outcome) noexcept {
    if (--countdown_ > 0) return;
    Take(key, policy, outcome);
  }

  /// Visits all samples so far and sets how densely the next are taken.
  template <typename Visit>
  void Drain(Visit visit) {
    const std::uint64_t end = written_.load(std::memory_order_acquire);
    std::uint64_t at = read_.load(std::memory_order_relaxed);
    std::uint64_t seen = 0;
    for (; at != end; ++at) {
      const Sample& sample = (*ring_)[at % kSlots];
      seen += sample.weight;
      visit(sample);
    }
    read_.store(at, std::memory_order_release);
    // Enough that a second like the last one fills a quarter of the ring.
    stride_.store(static_cast<std::uint32_t>(seen / (kSlots / 4) + 1), std::memory_order_relaxed);
  }

 private:
  void Take(std::string_view key, std::uint32_t policy, Outcome outcome) noexcept;
  std::uint32_t Random() noexcept;

  std::int64_t countdown_ = 1;
  std::uint32_t skipped_ = 1;  // the checks that the next sample stands for
  std::uint32_t random_;
  std::unique_ptr<std::array<Sample, kSlots>> ring_;
  std::atomic<std::uint32_t> stride_{1};
  alignas(64) std::atomic<std::uint64_t> written_{0};
  alignas(64) std::atomic<std::uint64_t> read_{0};
};

/// The samples of all limiters, counted. Thread-safe.
class TopKeys {
 public:
  static constexpr std::size_t kCapacity = 512;  ///< counters per sketch
  static constexpr std::int64_t kSliceSeconds = 10;
  static constexpr std::size_t kSlices = 6;
  static constexpr std::int64_t kWindowSeconds = kSliceSeconds * kSlices;

  enum class Kind : std::uint8_t { kHot, kLimited, kShadow };

  struct Key {
    std::string key;  ///< as the store names the bucket
    std::uint64_t count = 0;
    std::uint64_t error = 0;  ///< `count` may be too large by up to this
    std::uint32_t policy = 0;
  };

  /// A sampler for one limiter.
  std::shared_ptr<KeySampler> Add();

  /// Counts the samples since the last call. To be called about once a second.
  void Collect(Nanos now);

  /// The `n` most frequent keys of the last minute, most frequent first.
  std::vector<Key> Top(Kind kind, std::size_t n, Nanos now) const;

 private:
  struct Slice {
    std::int64_t number = -1;  // time / kSliceSeconds
    telemetry::SpaceSaving hot{kCapacity};
    telemetry::SpaceSaving limited{kCapacity};
    telemetry::SpaceSaving shadow{kCapacity};

    const telemetry::SpaceSaving& Of(Kind kind) const noexcept {
      return kind == Kind::kHot ? hot : kind == Kind::kLimited ? limited : shadow;
    }
  };

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<KeySampler>> samplers_;
  std::array<Slice, kSlices> slices_;
};

/// Stands for "no policy": the quota came with the request.
inline constexpr std::uint32_t kNoPolicy = ~std::uint32_t{0};

}  // namespace weir::limiter
