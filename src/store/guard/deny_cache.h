#pragma once

// Keys that are known to be limited until a known time, so that a flood on a blocked key does not
// reach the store. Right by these rules:
//
// - Only kLimited of quotas that time alone reopens is kept (not concurrency), for the very quota
//   and cost it was given for, and never longer than retry_after counted from when the call was
//   sent: the store decided later than that, so it would still refuse. Others' charges only move
//   the moment further away.
// - What gives permits back (refund, reset) forgets the key here at once and, through the channel
//   (guard.h), on all nodes. An answer that was under way meanwhile is not kept: each part of the
//   table counts what was forgotten in it, and a call must find the count it noted when it began.
// - A policy with another quota misses: the quota is part of what is looked up.
// - While the channel is down nothing is kept and nothing answered from here.
//
// So a key that another node frees may be refused here until that node's message has come: the
// delay of the channel, and in no case longer than `longest`.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"
#include "weir/clock.h"

namespace weir::store::guard {

/// The same on every node, since keys are named by it in messages between them.
std::uint64_t HashOf(std::string_view key) noexcept;

struct DenyCacheOptions {
  std::size_t max_keys = 65'536;  ///< 0: nothing is ever kept
  std::chrono::milliseconds longest{1000};
};

struct DenyCacheCounts {
  std::uint64_t hits = 0;       ///< applications answered from here
  std::uint64_t kept = 0;       ///< decisions put in
  std::uint64_t forgotten = 0;  ///< keys that messages or operations named
};

/// Thread-safe: one for all reactors, in parts with a lock each.
class DenyCache {
 public:
  /// Off until SetOn(true).
  explicit DenyCache(const DenyCacheOptions& options);

  /// Turning it off empties it.
  void SetOn(bool on);
  bool on() const noexcept { return on_.load(std::memory_order_acquire); }

  /// Answers a kCharge from memory if it is certain to be refused and all its decisions are known.
  bool TryAnswer(Application& application, Nanos now);

  /// To be noted when a charge is sent, and given back with its answer.
  std::uint64_t MarkOf(std::string_view key) const noexcept;
  /// Keeps what the store said to a refused application: the refusals, and beside them what it said
  /// about its other charges. `marks[i]` is that of charge i when the call was sent at `sent`.
  void Keep(const Application& refused, std::span<const std::uint64_t> marks, Nanos sent);

  void Forget(std::uint64_t hash);

  DenyCacheCounts counts() const;

 private:
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kParts = 64;

  struct Entry {
    std::uint64_t hash = 0;
    Nanos until = 0;  // 0: empty
    Nanos sent = 0;
    std::int64_t cost = 0;
    std::optional<Quota> quota;
    Decision decision;
    std::string key;
  };
  struct Part {
    mutable std::mutex mutex;
    std::atomic<std::uint64_t> mark{0};
    std::vector<std::array<Entry, kWays>> sets;
    DenyCacheCounts counts;
  };

  Part& PartOf(std::uint64_t hash) noexcept { return parts_[hash % kParts]; }
  const Part& PartOf(std::uint64_t hash) const noexcept { return parts_[hash % kParts]; }
  std::array<Entry, kWays>& SetOf(Part& part, std::uint64_t hash) const noexcept;
  std::optional<Decision> Find(const Charge& charge, Nanos now);
  void Put(const Charge& charge, const Decision& decision, std::uint64_t mark, Nanos sent,
           Nanos until);

  const DenyCacheOptions options_;
  std::size_t sets_per_part_;
  std::atomic<bool> on_{false};
  std::array<Part, kParts> parts_;
};

}  // namespace weir::store::guard
