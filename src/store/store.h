#pragma once

// Where the state of limits lives. The limiter uses this interface only; apps/weir picks the
// backend. A backend that answers immediately (memory) and one that answers a round trip later
// (Redis, PostgreSQL, MariaDB) look the same: results are written into the caller's memory, then
// `done` runs.

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

/// One key + quota + cost: the same type as an Engine's Ask; `quota` is never null here.
using Charge = weir::Ask;

/// The suffix that the key of a reservation's record (store/reserve/reservation.h) adds to that of
/// its bucket. No bucket's key contains it: a '%' in a key is followed by two digits.
inline constexpr std::string_view kRecordMark = "|%reserved:";

/// Whether a key is that of a reservation's record.
inline bool IsRecord(std::string_view key) noexcept { return key.rfind(kRecordMark) != key.npos; }

/// How long charges that are made together can be settled afterwards: they are a reservation if the
/// first is its record, whose lease lasts that long. 0: they cannot be settled.
inline Nanos ReservedFor(std::span<const Charge> charges) noexcept {
  if (charges.size() < 2 || charges[0].quota->algorithm() != Algorithm::kConcurrency) return 0;
  return IsRecord(charges[0].key) ? charges[0].quota->window().count() : 0;
}

enum class Op : std::uint8_t {
  kCharge,    ///< all charges or none; those of a reservation (see ReservedFor) can be settled
  kPeek,      ///< what kCharge would answer, without charging
  kRefund,    ///< returns `cost` to each key
  kRelease,   ///< releases the permits that `lease` names; one charge
  kReset,     ///< forgets each key
  kLease,     ///< takes up to `cost` permits of one key in advance (algorithm/lease.h); one charge
  kReturn,    ///< returns `cost` permits of the lease granted at `lease`; one charge
  kOverdraw,  ///< charges each key, whether it fits or not: see algorithm::Overdraw
  kSettle,    ///< changes charges by their costs, which have signs (algorithm/settle.h), if the
              ///< first, a concurrency charge, can release `lease`; else only peeks
};

/// What an application's error is about.
enum class Fault : std::uint8_t {
  kStore,     ///< it does not answer, or refuses the login: the next call would fail too
  kLoad,      ///< too many calls at the same time: the store itself may be fine
  kQuestion,  ///< this application cannot be decided, though others can: a damaged row, keys that
              ///< cannot be charged together, more than fits
};

/// The code that a backend returns decides what happens: only kStore opens the breaker for all
/// callers, and only kStore and kLoad are decided by on_store_error: local. So one caller's
/// applications never change the answers to another's.
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

/// What a region's store may do with a charge. Its node takes the terms from algorithm::LeaseTerms.
/// No other store uses them.
struct RegionTerms {
  Nanos term = 0;  ///< how long it may keep permits; 0: it passes the charge on to the home store
  Nanos lent = 0;  ///< how long the node may spend the permits it gets; shorter than `term`

  friend bool operator==(const RegionTerms&, const RegionTerms&) = default;
};

/// One atomic group of charges and its answer. The caller owns all memory and keeps it until
/// `done`.
struct Application {
  Op op = Op::kCharge;
  std::span<const Charge> charges;
  std::int64_t lease = 0;
  /// kSettle: the stamp of each charge; the first charge's is ignored. As many as there are
  /// charges.
  std::span<const Nanos> stamps = {};
  /// Filled: as many as there are charges.
  std::span<Decision> decisions;
  /// The terms of each charge whose policy is leased, null for the others; empty if no policy is.
  /// Only lease::LeasingStore, which stands in front of the others, uses them.
  std::span<const algorithm::LeaseTerms* const> terms = {};
  /// kCharge, kLease and kReturn of one charge.
  RegionTerms region = {};
  /// kCharge: `at` must be filled, so that the charge can be returned with kReturn.
  bool returnable = false;
  /// Filled: charged (kCharge), released (kRelease, kSettle), some granted (kLease); true
  /// otherwise.
  bool applied = false;
  /// Filled (kLease): how many permits, and what names them: the store's time, or the number of a
  /// grant in a region's store.
  std::int64_t granted = 0;
  /// Filled (kCharge) if `returnable`, by some stores always: the store's time at which all charges
  /// were made (see algorithm::ChargedAt); 0: unknown.
  Nanos at = 0;
  /// Filled by a LeasingStore (kCharge): decided without asking the store, so the remaining count
  /// is an estimate.
  bool estimated = false;
  /// Filled: why it could not be decided (see FaultOf); decisions are then meaningless.
  Status status;
};

/// Called once when all applications of a batch are filled: before Apply returns, or later on the
/// thread that called Apply. Must be cheap to move; captures should fit std::function's small
/// buffer.
using Done = std::function<void()>;

/// A store may have parts that fail independently: the masters of a cluster.
inline constexpr std::uint32_t kMaxParts = 64;

/// Thread safety: a Store object belongs to one thread (a reactor); the backend behind it is
/// shared.
class Store {
 public:
  /// Everything that is still pending is answered with kUnavailable, whatever the store itself has
  /// done or will do with it: inside the destructor, or after it on the store's thread. So every
  /// Done runs once, as long as that thread's event loop runs.
  virtual ~Store() = default;

  /// Applies each application atomically, in order as far as they share keys. Never blocks.
  virtual void Apply(std::span<Application> batch, Done done) = 0;

  /// Which part, below kMaxParts, decides this now. 0: there is only one, or it is unknown.
  virtual std::uint32_t PartOf(const Application&) const { return 0; }
  /// Keys with the same text here (a cluster's slot) are charged at the same moment if they are
  /// charged together; others are not. Empty: all are.
  virtual std::string GroupOf(std::string_view /*key*/) const { return {}; }
  /// A key that this part decides and that is no policy's bucket: policies' keys contain a '|'.
  virtual std::string ProbeKey(std::uint32_t /*part*/) const { return "weir-probe"; }
};

}  // namespace weir::store
