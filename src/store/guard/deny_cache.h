#pragma once

// Keys that are known to be limited until a known time, so that a flood on a blocked key does not
// reach the store. It is correct by these rules:
//
// - Only kLimited of quotas that reopen by time alone is kept (not concurrency), for exactly the
//   quota and cost it was given for, and never longer than retry_after counted from when the call
//   was sent: the store decided later than that, so it would still refuse. Charges by others only
//   move that time further away.
// - Operations that return permits (refund, reset) drop the key here immediately and, through
//   the channel (guard.h), on all nodes. An answer that was under way then is not kept: each part
//   of the table counts the drops in it, and a call must find the count it noted when it began.
// - A policy with another quota misses: the quota is part of the lookup key.
// - While the channel is down nothing is kept and nothing is answered from here.
//
// So a key that another node frees may be refused here until that node's message arrives: the delay
// of the channel, and in no case longer than `longest`.

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

/// The same on every node, since messages between nodes identify keys by it.
std::uint64_t HashOf(std::string_view key) noexcept;

struct DenyCacheOptions {
  std::size_t max_keys = 65'536;  ///< 0: nothing is ever kept
  std::chrono::milliseconds longest{1000};
};

struct DenyCacheCounts {
  std::uint64_t hits = 0;       ///< applications answered from here
  std::uint64_t kept = 0;       ///< decisions added
  std::uint64_t forgotten = 0;  ///< keys that messages or operations named
};

/// Thread-safe: shared by all reactors, in parts with a lock each.
class DenyCache {
 public:
  /// Off until SetOn(true).
  explicit DenyCache(const DenyCacheOptions& options);

  /// Turning it off empties it.
  void SetOn(bool on);
  bool on() const noexcept { return on_.load(std::memory_order_acquire); }

  /// Answers a kCharge from memory if it is certain to be refused and all its decisions are known.
  bool TryAnswer(Application& application, Nanos now);

  /// To be noted when a charge is sent, and passed to Keep with its answer.
  std::uint64_t MarkOf(std::string_view key) const noexcept;
  /// Keeps the store's answer to a refused application: the refusals, and with them its decisions
  /// about the other charges. `marks[i]` is that of charge i when the call was sent at `sent`.
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
