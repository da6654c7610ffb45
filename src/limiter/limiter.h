#pragma once

// The only decider: Request → policies → charges → store → Decision. Every protocol decides by
// calling this and nothing else.

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "limiter/permits.h"
#include "policy/request.h"
#include "store/store.h"
#include "telemetry/span.h"
#include "weir/decision.h"
#include "weir/result.h"

namespace weir::policy {
struct Policy;
}

namespace weir::telemetry {
class Tracer;
}

namespace weir::limiter {

/// Where a check came from, for the log and for traces. Views live as long as the check's request.
struct Origin {
  std::string_view door = {};        ///< a literal: "http", "grpc", "rlqs", "resp", "proxy"
  std::string_view request_id = {};  ///< empty: the caller sent none
  telemetry::SpanContext trace = {};
};

/// The result of one policy for one descriptor.
struct PolicyVerdict {
  std::string_view policy;
  const Quota* quota = nullptr;          ///< null: unlimited
  const policy::Policy* rule = nullptr;  ///< null: the quota came with the request
  std::size_t descriptor = 0;            ///< index into Request::descriptors
  std::string_view key;                  ///< the store's key of the bucket; empty if unlimited
  /// In a refused request, what the other limits have left shows that nothing was charged to them.
  Decision decision;
  bool shadow = false;    ///< decided and counted, but never blocks
  bool degraded = false;  ///< the store could not decide: on_store_error did
  /// Decided from permits taken in advance: what is left, and when to retry, are estimates.
  bool estimated = false;
};

/// One request and its result. Reused from call to call, so that nothing is allocated.
struct Check {
  /// As after construction, but keeps its memory: nothing of an earlier use is left.
  void Reset(store::Op operation, const Origin& from) {
    request = {};
    op = operation;
    origin = from;
    permits.clear();
    lease = 0;
    reserve = {};
    settles = {};
    decision = {};
    policy = {};
    degraded = false;
    estimated = false;
    matched = true;
    degraded_by = {};
    applied = false;
    reservation.clear();
    verdicts.clear();
    if (!status.ok()) status = {};
  }

  policy::Request request;
  Origin origin = {};
  store::Op op = store::Op::kCharge;
  /// kRelease: the permits to release, as ParsePermits reads them. If there are none, `lease` (a
  /// Decision's) names the permit of the first concurrency policy that applies.
  std::vector<Permit> permits = {};
  std::int64_t lease = 0;
  /// kCharge: how long the charge may be settled (store/reserve/reservation.h); 0: not at all.
  std::chrono::milliseconds reserve{0};
  /// kSettle: `reservation` of the check that reserved. request.cost is the real cost; the rest of
  /// the request is ignored.
  std::string_view settles = {};

  /// Filled: the strictest enforced decision. If nothing applies, allowed with limit 0, or kNever
  /// where unmatched requests are denied.
  Decision decision;
  std::string_view policy;  ///< the policy that made it; empty if nothing applies
  bool degraded = false;
  bool matched = true;                ///< false: a charge or a peek that no policy decides
  bool estimated = false;             ///< the decision is that of an estimated PolicyVerdict
  std::string_view degraded_by = {};  ///< if degraded: the value of on_store_error, e.g. "local"
  /// Whether it is refused because no policy applies.
  bool refused_unmatched() const noexcept { return !matched && !decision.allowed(); }
  /// Filled: charged (kCharge), some permit released (kRelease), settled just now (kSettle); true
  /// for the other operations.
  bool applied = false;
  /// Filled: if `reserve` and allowed, the text that settles it. Else empty.
  std::string reservation = {};
  /// Filled: every policy that applied, in order of descriptors. Views live until `done` returns.
  std::vector<PolicyVerdict> verdicts;
  /// Filled: not ok means "could not decide" (with on_store_error: deny, that is a refusal, not
  /// this).
  Status status;
};

/// What identifies the used-up quota to a refused caller: the key, or the entries that its policy
/// counts by, as `user:42|route:/v1/pay` if there are several. The value of an API key is left out.
std::string RefusedKey(const Check& check);

/// A request that a protocol refuses itself, because it does not say for certain who it is from or
/// what it is for.
struct Rejection {
  std::string_view door;     ///< a literal, as in Origin
  std::string_view reason;   ///< a sentence
  std::string_view address;  ///< of the client; empty: unknown
  std::string_view request_id = {};
};

/// Thread safety: one Limiter per reactor; policies and store state behind it are shared.
class Limiter {
 public:
  virtual ~Limiter() = default;

  /// Decides all checks; those that arrived together are decided together. `done` runs before this
  /// returns if the store is immediate. The checks' memory must live until then.
  virtual void Decide(std::span<Check> checks, store::Done done) = 0;

  /// Only within `done`: what the verdicts and names of its checks point into, kept alive as long
  /// as this. For callers that answer them after `done` has returned.
  virtual std::shared_ptr<const void> Keep() { return nullptr; }

  /// For charges that a protocol made itself (CL.THROTTLE carries its own quota): no policies.
  virtual void Apply(std::span<store::Application> batch, store::Done done) = 0;

  /// Logs it, within the same rate as refused checks.
  virtual void NoteRejection(const Rejection& /*rejection*/) {}

  /// Where the protocols record their requests; null: nothing is traced.
  virtual telemetry::Tracer* tracer() const noexcept { return nullptr; }
};

}  // namespace weir::limiter
