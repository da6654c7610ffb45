#pragma once

// Where the state of limits lives. The limiter speaks to this interface only; apps/weir picks the
// backend. A backend that answers at once (memory) and one that answers a round trip later (Redis,
// PostgreSQL, MariaDB) look the same: results are written into the caller's memory, then `done`
// runs.

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "weir/decision.h"
#include "weir/engine.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir::store {

/// One key + quota + cost. The same thing as one question to an Engine; `quota` is never null here.
using Charge = weir::Ask;

enum class Op : std::uint8_t {
  kCharge,   ///< all charges or none
  kPeek,     ///< what kCharge would answer, charging nothing
  kRefund,   ///< gives `cost` back to each key
  kRelease,  ///< gives back the permits that `lease` names; one charge
  kReset,    ///< forgets each key
};

/// One atomic group of charges and its answer. The caller owns all memory and keeps it until
/// `done`.
struct Application {
  Op op = Op::kCharge;
  std::span<const Charge> charges;
  std::int64_t lease = 0;
  /// Filled: as many as there are charges.
  std::span<Decision> decisions;
  /// Filled: charged (kCharge), released (kRelease); true otherwise.
  bool applied = false;
  /// Filled: why it could not be decided; decisions are then meaningless.
  Status status;
};

/// Called once when all applications of a batch are filled: before Apply returns, or later on the
/// thread that called Apply. Must be cheap to move; captures should fit std::function's small
/// buffer.
using Done = std::function<void()>;

/// Thread safety: a Store object belongs to one thread (a reactor); what stands behind it is
/// shared.
class Store {
 public:
  virtual ~Store() = default;

  /// Applies each application atomically, in order as far as they share keys. Never blocks.
  virtual void Apply(std::span<Application> batch, Done done) = 0;

  /// True if Apply always completes before it returns.
  virtual bool immediate() const noexcept = 0;
};

}  // namespace weir::store
