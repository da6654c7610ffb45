#pragma once

// Where the state of limits lives. The limiter speaks to this interface only; apps/weir picks the
// backend. A backend that answers at once (memory) and one that answers a round trip later (Redis,
// PostgreSQL, MariaDB) look the same: results are written into the caller's memory, then `done`
// runs.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "weir/clock.h"
#include "weir/decision.h"
#include "weir/engine.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir::algorithm {
struct LeaseTerms;
}  // namespace weir::algorithm

namespace weir::store {

/// One key + quota + cost. The same thing as one question to an Engine; `quota` is never null here.
using Charge = weir::Ask;

/// What the key of a reservation's record (store/reserve/reservation.h) has after that of its
/// bucket. No bucket's has it: a '%' in a key is followed by two digits.
inline constexpr std::string_view kRecordMark = "|%reserved:";

/// Whether a key is that of a reservation's record.
inline bool IsRecord(std::string_view key) noexcept { return key.rfind(kRecordMark) != key.npos; }

/// How long charges that are made together can be settled afterwards: they are a reservation if the
/// first is its record, whose lease lasts as long. 0: they cannot.
inline Nanos ReservedFor(std::span<const Charge> charges) noexcept {
  if (charges.size() < 2 || charges[0].quota->algorithm() != Algorithm::kConcurrency) return 0;
  return IsRecord(charges[0].key) ? charges[0].quota->window().count() : 0;
}

enum class Op : std::uint8_t {
  kCharge,    ///< all charges or none; those of a reservation (see ReservedFor) can be settled
  kPeek,      ///< what kCharge would answer, charging nothing
  kRefund,    ///< gives `cost` back to each key
  kRelease,   ///< gives back the permits that `lease` names; one charge
  kReset,     ///< forgets each key
  kLease,     ///< takes up to `cost` permits of one key in advance (algorithm/lease.h); one charge
  kReturn,    ///< gives back `cost` permits of the lease granted at `lease`; one charge
  kOverdraw,  ///< charges each key, whether it fits or not: see algorithm::Overdraw
  kSettle,    ///< changes charges by their costs, which have signs (algorithm/settle.h), if the
              ///< first, a concurrency charge, can release `lease`; else only looks
};

/// Whom an error of an application speaks of.
enum class Fault : std::uint8_t {
  kStore,     ///< it does not answer, or lets nobody in: the next question would fare the same
  kLoad,      ///< too much is asked at once: the store itself may be well
  kQuestion,  ///< this question cannot be decided, whatever else can: a damaged row, keys that
              ///< cannot be charged together, more than fits
};

/// What code a backend gives decides what happens: only kStore opens the breaker for everybody, and
/// only kStore and kLoad are decided by on_store_error: local. So one caller's questions never
/// change the answers to another's.
constexpr Fault FaultOf(Code code) noexcept {
  switch (code) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kUnauthenticated:
    case Code::kPermissionDenied:
      return Fault::kStore;
    case Code::kResourceExhausted:
      return Fault::kLoad;
    default:
      return Fault::kQuestion;
  }
}

/// What the store of a region may do about a charge, which its node has taken from
/// algorithm::LeaseTerms. No other store looks at it.
struct RegionTerms {
  Nanos term = 0;  ///< how long it may keep permits; 0: it passes the charge on to the home store
  Nanos lent = 0;  ///< how long the node may spend those that it gets; shorter

  friend bool operator==(const RegionTerms&, const RegionTerms&) = default;
};

/// One atomic group of charges and its answer. The caller owns all memory and keeps it until
/// `done`.
struct Application {
  Op op = Op::kCharge;
  std::span<const Charge> charges;
  std::int64_t lease = 0;
  /// kSettle: the stamp of each charge but the first, which may have any; as many as there are
  /// charges.
  std::span<const Nanos> stamps = {};
  /// Filled: as many as there are charges.
  std::span<Decision> decisions;
  /// The terms of each charge whose policy is leased, null for the others; empty: none is. For
  /// lease::LeasingStore alone, which stands before the others: they know no leased policies.
  std::span<const algorithm::LeaseTerms* const> terms = {};
  /// kCharge, kLease and kReturn of one charge.
  RegionTerms region = {};
  /// kCharge: `at` has to be filled, so that the charge can be given back with kReturn.
  bool returnable = false;
  /// Filled: charged (kCharge), released (kRelease, kSettle), some granted (kLease); true
  /// otherwise.
  bool applied = false;
  /// Filled (kLease): how many permits, and what names them: the store's time, or the number of a
  /// grant in a region's store.
  std::int64_t granted = 0;
  /// Filled (kCharge) if `returnable`, by some stores always: the store's time, which all charges
  /// were made at (see algorithm::ChargedAt); 0: not known.
  Nanos at = 0;
  /// Filled by a LeasingStore (kCharge): nothing was asked of the store, so what is left is an
  /// estimate.
  bool estimated = false;
  /// Filled: why it could not be decided (see FaultOf); decisions are then meaningless.
  Status status;
};

/// Called once when all applications of a batch are filled: before Apply returns, or later on the
/// thread that called Apply. Must be cheap to move; captures should fit std::function's small
/// buffer.
using Done = std::function<void()>;

/// A store may have parts that fail one by one: the masters of a cluster.
inline constexpr std::uint32_t kMaxParts = 64;

/// Thread safety: a Store object belongs to one thread (a reactor); what stands behind it is
/// shared.
class Store {
 public:
  /// Everything that is still pending is answered with kUnavailable, whatever the store itself has
  /// done or will do about it: inside the destructor, or after it on the thread of the store. So
  /// every Done runs once, as long as that thread's event loop does.
  virtual ~Store() = default;

  /// Applies each application atomically, in order as far as they share keys. Never blocks.
  virtual void Apply(std::span<Application> batch, Done done) = 0;

  /// Which part, below kMaxParts, decides this now. 0: there is but one, or it is not known.
  virtual std::uint32_t PartOf(const Application&) const { return 0; }
  /// Keys with the same text here are charged in one moment; others are not, if they are charged
  /// together: those of a cluster's slots. Empty: all are.
  virtual std::string GroupOf(std::string_view /*key*/) const { return {}; }
  /// A key that this part decides about and that is nobody's bucket: policies' keys have a '|'.
  virtual std::string ProbeKey(std::uint32_t /*part*/) const { return "weir-probe"; }
};

}  // namespace weir::store
