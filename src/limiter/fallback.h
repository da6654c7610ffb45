#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "limiter/batch.h"
#include "weir/engine.h"

namespace weir::limiter {

/// What is done for this item when the store cannot decide. An error that only this request meets
/// and that will not pass by itself gets no share: callers who know how to cause it would get a
/// share in addition to the quota.
policy::OnStoreError RuleOf(const Batch::Item& item, store::Fault fault) noexcept;

/// Decides while the store is down, as each policy's on_store_error says. `local` grants a share of
/// the quota from an engine in this process, so that all processes together stay near the limit.
///
/// Thread-safe.
class Fallback {
 public:
  struct Options {
    std::size_t max_keys = 100'000;
    double share = 0.1;  ///< for quotas that came with a request; policies carry their own
    const Clock* clock = nullptr;
  };

  explicit Fallback(const Options& options);

  /// Decides the enforced items of one check (all or none charged); decisions[i] is for items[i].
  /// Reads without charging unless `charge`.
  void DecideEnforced(const Batch& batch, std::span<const Batch::Item* const> items,
                      store::Fault fault, bool charge, std::span<Decision> decisions);

  /// Decides one item that is separate from the others of its check, under its application's `op`.
  Decision DecideAlone(const Batch& batch, const Batch::Item& item, store::Fault fault,
                       store::Op op);

  /// Releases a permit that was granted here; false if it was not, or was already released.
  bool Release(const Batch& batch, const Batch::Item& item, std::int64_t lease);

 private:
  Quota LocalQuota(const Batch::Item& item) const;

  const double share_;
  Engine engine_;
};

}  // namespace weir::limiter
