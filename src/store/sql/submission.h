#pragma once

// A call of Store::Apply on its way through the combiner. Everything is copied, so that an answer
// can be abandoned (deadline passed, store destroyed) while a transaction still works on it.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/key_hash.h"
#include "store/store.h"

namespace weir::store::sql {

class Origin;

/// Keys fall into this many stripes; a transaction in flight holds the stripes of its keys, so that
/// no two transactions of a process ever wait for each other's rows.
inline constexpr std::size_t kStripes = 8192;

struct ItemCharge {
  std::string_view key;  ///< in Submission::keys
  Quota quota;
  std::int64_t cost = 0;
  Nanos stamp = 0;  ///< kSettle
  std::uint32_t stripe = 0;
  std::uint32_t row = 0;  ///< within the batch that has it
};

/// One application.
struct Item {
  Op op = Op::kCharge;
  std::int64_t lease = 0;
  Nanos reserved = 0;  ///< kCharge: see ReservedFor
  std::span<ItemCharge> charges;
  std::span<Decision> decisions;
  bool applied = false;
  std::int64_t granted = 0;  ///< kLease
  Nanos at = 0;              ///< kLease, kCharge
  Status status;
  bool answered = false;   ///< the fields above are final; guarded by the combiner
  bool abandoned = false;  ///< its deadline passed first: a lane may still write to it
};

/// Thread safety: the combiner guards it until it is handed to its origin.
class Submission {
 public:
  Submission(std::span<Application> batch, Done done, const KeyHash& hash);

  std::span<Item> items() noexcept { return items_; }

  /// Writes the answers into the caller's memory and calls back. On the caller's thread.
  void Deliver();
  /// Completes the call with `error` while a lane may still work on the answers. On the caller's
  /// thread; nothing may be delivered afterwards.
  void GiveUp(const Error& error);

  std::shared_ptr<Origin> origin;  ///< null: the answers are no longer wanted
  std::chrono::steady_clock::time_point deadline;
  std::size_t unanswered = 0;

 private:
  std::span<Application> batch_;
  Done done_;
  std::string keys_;
  std::vector<ItemCharge> charges_;
  std::vector<Decision> decisions_;
  std::vector<Item> items_;
};

}  // namespace weir::store::sql
