#pragma once

// The permits of one concurrency key that a node took from the store in advance. Each is a permit
// of its own in the store, with a name of its own: a client that gets one releases it like any
// other, at any node, and what is left is released in the same way. The store counts it for the
// policy's lease and a term; a node hands it out during the term only, so it is counted for as long
// as any client may use it. No clock, no store: time comes with every call, always that of the
// node.

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
  /// No question to the store is for more.
  static constexpr std::int64_t kMostAsked = 64;

  /// `id` is that of no other stock of a leasing store.
  PermitStock(const algorithm::LeaseTerms& terms, Nanos now, std::uint64_t id)
      : terms_(terms), id_(id), demand_(terms.term / 2, now) {}

  const algorithm::LeaseTerms& terms() const noexcept { return terms_; }
  std::uint64_t id() const noexcept { return id_; }

  void Note(Nanos now) { demand_.Note(now, 1); }
  void Pass(Nanos now) { demand_.Pass(now); }
  bool leased() const noexcept { return demand_.leased(); }
  /// No request for so long that what is held is better given back.
  bool slack(Nanos now) const noexcept {
    return !permits_.empty() && now - demand_.noted() > terms_.term / 4;
  }
  /// Nobody has asked for a while, and nothing is held.
  bool idle(Nanos now) const noexcept {
    return !asking_ && permits_.empty() && now - demand_.noted() > 2 * terms_.term;
  }

  /// Hands out the oldest that lasts for `rest` longer than `now`.
  std::optional<StockedPermit> Take(Nanos now, Nanos rest);
  /// Takes back one that was handed out for a check which was not admitted, and so has never left
  /// the node.
  void PutBack(const StockedPermit& permit) { permits_.push_front(permit); }
  std::size_t held() const noexcept { return permits_.size(); }

  bool ShouldAsk(Nanos now) const noexcept;
  /// Notes that more is to be asked for soon. False if that was noted before.
  bool MarkDue() noexcept { return !std::exchange(due_, true); }
  void ClearDue() noexcept { due_ = false; }
  /// How many to ask for: what five eighths of a term are likely to take, but a small part of the
  /// limit, since what one node keeps in stock is missing on the others. One after a failure: what
  /// the store granted to a question whose answer was lost is missing for a whole lease.
  std::int64_t Want() const noexcept;
  void Asked(std::int64_t count) noexcept {
    asking_ = true;
    asked_ = count;
  }
  /// What the store granted to a question that was sent at `sent`; `standing`: what it said of the
  /// key. If it granted less than was asked for, it is left alone for `pause`. False: it came too
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

  /// What to answer about a permit that was handed out.
  Decision Estimate(const StockedPermit& permit) const noexcept;

  /// Takes out what may no longer be handed out: the names, to be released.
  std::vector<std::int64_t> Expire(Nanos now);
  /// All names, to be released; nothing is held afterwards.
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
  Decision known_;  // the last the store said
};

}  // namespace weir::store::lease
