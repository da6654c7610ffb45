#pragma once

// The permits of one concurrency key that a node took from the store in advance. Each is a
// separate permit in the store, with its own name: a client that gets one releases it like any
// other, at any node, and unused ones are released in the same way. The store counts it for the
// policy's lease and a term; a node hands it out during the term only, so it is counted for as
// long as any client may use it. No clock, no store: the time is passed with every call, always
// the node's.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "algorithm/lease.h"
#include "store/lease/demand.h"
#include "store/lease/flaws.h"
#include "weir/clock.h"
#include "weir/decision.h"

namespace weir::store::lease {

struct StockedPermit {
  std::int64_t name = 0;
  Nanos until = 0;  ///< the last moment at which it may be handed out, by the node's clock
};

/// Not thread-safe.
class PermitStock {
 public:
  /// The most permits in one request to the store.
  static constexpr std::int64_t kMostAsked = 64;

  /// `id` is unique among the stocks of a leasing store.
  PermitStock(const algorithm::LeaseTerms& terms, Nanos now, std::uint64_t id)
      : terms_(terms), id_(id), demand_(terms.term / 2, now) {}

  const algorithm::LeaseTerms& terms() const noexcept { return terms_; }
  std::uint64_t id() const noexcept { return id_; }

  void Note(Nanos now) { demand_.Note(now, 1); }
  void Pass(Nanos now) { demand_.Pass(now); }
  bool leased() const noexcept { return demand_.leased(); }
  /// No request for so long that it is better to return what is held.
  bool slack(Nanos now) const noexcept {
    return !permits_.empty() && now - demand_.noted() > terms_.term / 4;
  }
  /// No requests for a while, and nothing is held.
  bool idle(Nanos now) const noexcept {
    return !asking_ && permits_.empty() && now - demand_.noted() > 2 * terms_.term;
  }

  /// Hands out the oldest permit that lasts for `rest` longer than `now`.
  std::optional<StockedPermit> Take(Nanos now, Nanos rest);
  /// Takes back a permit that was handed out for a check which was not admitted, so it has never
  /// left the node.
  void PutBack(const StockedPermit& permit) { permits_.push_front(permit); }
  std::size_t held() const noexcept { return permits_.size(); }

  bool ShouldAsk(Nanos now) const noexcept;
  /// Notes that more will be requested soon. False if that was already noted.
  bool MarkDue() noexcept { return !std::exchange(due_, true); }
  void ClearDue() noexcept { due_ = false; }
  /// How many to request: what five eighths of a term are likely to take, but a small part of the
  /// limit, since permits in one node's stock are unavailable to the others. One after a failure:
  /// permits granted in an answer that was lost are unavailable for a whole lease.
  std::int64_t Want() const noexcept;
  void Asked(std::int64_t count) noexcept {
    asking_ = true;
    asked_ = count;
  }
  /// The store's answer to a request that was sent at `sent`; `standing`: what it said about the
  /// key. If it granted less than requested, it is not asked again for `pause`. False: it came too
  /// late to be handed out, and nothing of it is kept.
  struct Granted {
    std::span<const std::int64_t> names;
    Decision standing;
    Nanos sent = 0;
    Nanos now = 0;
    Nanos pause = 0;
  };
  bool OnGrant(const Granted& granted, const Flaws& flaws);
  void Failed(Nanos now) noexcept;

  /// What to answer for a permit that was handed out.
  Decision Estimate(const StockedPermit& permit) const noexcept;

  /// Removes permits that must no longer be handed out; returns their names, to be released.
  std::vector<std::int64_t> Expire(Nanos now);
  /// Removes all permits; returns their names, to be released.
  std::vector<std::int64_t> Surrender();

 private:
  algorithm::LeaseTerms terms_;
  std::uint64_t id_;
  Demand demand_;
  std::deque<StockedPermit> permits_;  // mostly the oldest first
  bool asking_ = false;
  bool due_ = false;
  std::int64_t asked_ = 0;
  bool failed_ = false;  // the last question
  Nanos ask_after_ = 0;
  Decision known_;  // the last decision of the store
};

}  // namespace weir::store::lease
