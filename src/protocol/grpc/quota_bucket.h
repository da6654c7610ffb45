#pragma once

// What one Envoy is assigned of one bucket: how much to charge for it, and when. Pure: no clock, no
// limiter, no message. The bound that follows from it is proven in docs/design/rlqs.md; in short:
// an Envoy that was assigned f a second holds a bucket of at most f that fills with f a second, and
// every token of it was charged before it could be there.

#include <chrono>
#include <cstdint>
#include <optional>

#include "weir/clock.h"

namespace weir::grpc {

/// Envoy counts a time to live in whole seconds; it is pushed again every second.
inline constexpr std::chrono::seconds kAssignmentTtl{3};
/// How far ahead the inflow of an Envoy's bucket is paid for: until the next push, and a little.
inline constexpr std::chrono::milliseconds kPaidAhead{1'250};
/// After this long without a request the Envoy abandons the bucket.
inline constexpr std::chrono::seconds kIdleAfter{15};

/// What a limiter's answer says about a bucket, in requests.
struct QuotaFacts {
  bool limited = false;         ///< some policy applies; otherwise nothing needs to be charged
  std::int64_t per_second = 1;  ///< what the tightest policy grants in the long run, at least 1
  std::int64_t remaining = 0;   ///< what is left now
  bool assignable = true;       ///< false: nothing can be assigned of it (requests in flight)
  bool single_attempt = false;  ///< refused charges count as well: try only once
};

/// Not thread-safe. Times are those of the node's own clock.
class QuotaBucket {
 public:
  /// A question to the limiter. `cost` 0: which limit applies?
  struct Ask {
    std::int64_t rate = 0;  ///< what is assigned if it is granted
    std::int64_t cost = 0;
  };

  explicit QuotaBucket(Nanos now) : heard_(now) {}

  /// The Envoy has counted `requests` in `elapsed`. Below a second that shows only that there is
  /// demand.
  void Report(Nanos now, std::chrono::seconds elapsed, std::uint64_t requests) noexcept;
  /// There is no demand for it any more.
  bool Idle(Nanos now) const noexcept;

  /// Begins a round of questions. Each answer yields the next, until there is none: then push
  /// rate().
  Ask Begin(Nanos now) noexcept;
  std::optional<Ask> OnAnswer(Nanos now, const QuotaFacts& facts, bool granted) noexcept;

  /// Requests a second, and the size of the Envoy's bucket; 0: everything is refused.
  std::int64_t rate() const noexcept { return rate_; }
  std::int64_t demand() const noexcept { return demand_; }
  /// rate() was sent.
  void Pushed(Nanos now) noexcept { pushed_ = now; }

  /// Gives the bucket up. Returns what the Envoy may still admit if nothing more is sent to it, as
  /// far as it is not paid for.
  std::int64_t Abandon(Nanos now) noexcept;

 private:
  void Settle(Nanos now) noexcept;
  bool Lives(Nanos now) const noexcept;
  std::int64_t Target(Nanos now) const noexcept;
  std::int64_t CostOf(std::int64_t rate) const noexcept;
  Ask AskForNew(Nanos now) noexcept;
  std::optional<std::int64_t> Less(const QuotaFacts& facts) const noexcept;

  // In force, according to what the Envoy was last sent.
  std::int64_t rate_ = 0;
  Nanos pushed_ = 0;
  // Tokens charged beyond those that have flowed into the Envoy's bucket, times 10^9; negative: the
  // inflow that was not charged.
  std::int64_t prepaid_ = 0;
  Nanos settled_ = 0;

  // Known facts.
  bool known_ = false;  // the facts below
  QuotaFacts facts_;
  std::int64_t demand_ = 0;  // a second; 0: unknown
  Nanos heard_;              // when there was last demand
  bool scarce_ = false;      // the last answer left little for others

  // The round of questions.
  Ask asked_;
  bool lives_ = false;
  int attempts_ = 0;
};

}  // namespace weir::grpc
