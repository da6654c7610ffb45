#pragma once

// What a node knows about one key of a leased policy: how often it is checked, and the permits the
// node holds. No clock, no store: the time is passed with every call, always the node's.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "algorithm/lease.h"
#include "store/lease/demand.h"
#include "store/lease/flaws.h"
#include "store/lease/rate_share.h"
#include "weir/clock.h"
#include "weir/decision.h"

namespace weir::store::lease {

/// Permits of one grant.
struct Lot {
  std::uint64_t id = 0;  ///< unique among the grants of a leasing store
  std::int64_t left = 0;
  std::int64_t spent = 0;    ///< for checks that were admitted
  std::int64_t pending = 0;  ///< taken for checks that are not decided yet
  std::int64_t lent = 0;     ///< to nodes of a region, which may or may not have spent them
  Nanos at = 0;              ///< the store's time, which names the grant
  Nanos until = 0;           ///< the last moment at which they may be spent, by the node's clock
};

/// Permits that were spent from one grant, and until when they last.
struct Taken {
  std::uint32_t position = 0;  ///< of the charge they were spent for
  std::uint64_t lot = 0;
  std::int64_t count = 0;
  Nanos until = 0;
  std::uint64_t share = 0;  ///< if not 0: held by a share under this mark, not from a grant
  std::int64_t permit = 0;  ///< if not 0: the name of a permit in stock; `lot` is the stock's id
  bool held = false;        ///< from a grant, for a check that is not decided yet
  bool lent = false;        ///< from a grant, to a node of a region
  bool refund = false;      ///< nothing was spent: what a client refunds is put back then
};

/// What the store granted in one answer.
struct Granted {
  LeaseGrant grant;
  std::uint64_t id = 0;
  std::int64_t want = 0;
  Nanos sent = 0;
  Nanos now = 0;
  Nanos pause = 0;       ///< how long not to ask the store again if it gave less than requested
  bool patient = false;  ///< for all of `pause`, even if it will have some sooner
};

/// Not thread-safe.
class Holding {
 public:
  /// `epoch`: as for RateShare.
  Holding(const algorithm::LeaseTerms& terms, Nanos now, std::uint64_t epoch = 0);

  const algorithm::LeaseTerms& terms() const noexcept { return terms_; }
  /// The reserved part of the rate, beside the permits.
  RateShare& share() noexcept { return share_; }
  const RateShare& share() const noexcept { return share_; }

  /// As in Demand.
  void Note(Nanos now, std::int64_t cost);
  void Pass(Nanos now) { demand_.Pass(now); }
  bool leased() const noexcept { return demand_.leased(); }
  void Insist() noexcept { demand_.Insist(); }
  /// No check for so long that it is better to return what is held.
  bool slack(Nanos now) const noexcept {
    return held_ > 0 && now - demand_.noted() > terms_.term / 4;
  }
  /// No checks for a while, and nothing is held.
  bool idle(Nanos now) const noexcept;

  /// Permits that can be spent at `now` and for `rest` longer.
  std::int64_t Available(Nanos now, Nanos rest = 0) const noexcept;
  /// Spends `cost` for the charge at `position`, oldest permits first, and adds what was spent to
  /// `taken`. False, and nothing is spent, if there are fewer.
  bool Take(Nanos now, std::int64_t cost, Nanos rest, std::uint32_t position,
            std::vector<Taken>& taken);
  /// Spends for a check that is thereby admitted, from whatever grants. `cost` is positive.
  bool Take(Nanos now, std::int64_t cost);
  /// As Take, for a check that is not decided yet: each part must then be passed to Spend or
  /// PutBack. Until then none of it can be refunded, since none of it was admitted.
  bool Hold(Nanos now, std::int64_t cost, Nanos rest, std::uint32_t position,
            std::vector<Taken>& taken);
  void Spend(const Taken& held) noexcept;
  /// Lends a node up to `want` permits of one grant, of those that last for `rest`: the first of
  /// want, want / 2, … that is available, as the stores do. A count of 0: there are none. Only the
  /// node can return them: no refund does, since they may not have been spent yet.
  Taken Lend(Nanos now, std::int64_t want, Nanos rest);
  /// Takes back what was spent but not used after all, if its grant still lasts: permits of another
  /// grant have another term. Returns how many permits that was.
  std::int64_t PutBack(Nanos now, const Taken& taken);
  /// A request that was admitted did not happen after all. It is not known which grant its permits
  /// came from; any grant of which at least that many were spent may be used.
  std::int64_t Refund(Nanos now, std::int64_t cost);
  std::int64_t held() const noexcept { return held_; }

  /// True if it is time to request more from the store.
  bool ShouldAsk(Nanos now) const noexcept { return ShouldAsk(now, 0); }
  /// As above, if permits are useful only when they last for `rest` longer.
  bool ShouldAsk(Nanos now, Nanos rest) const noexcept;
  /// Notes that more permits, or more of the share, will be requested soon. False if that was
  /// already noted.
  bool MarkDue() noexcept { return !std::exchange(due_, true); }
  bool MarkShareDue() noexcept { return !std::exchange(share_due_, true); }
  /// Clears the note, and returns whether there was one.
  bool TakeDue() noexcept { return std::exchange(due_, false); }
  bool TakeShareDue() noexcept { return std::exchange(share_due_, false); }
  /// How many permits to request: what five eighths of a term are likely to take, so that all are
  /// spent well before they end, and never more than half of a window's limit.
  std::int64_t Want(Nanos now) const noexcept { return Want(now, 0); }
  std::int64_t Want(Nanos now, Nanos rest) const noexcept;
  void Asked(std::int64_t want) noexcept {
    asking_ = true;
    asked_ = want;
  }
  /// How many permits are on their way at best: requested already, or to be requested soon.
  std::int64_t Coming(Nanos now) const noexcept {
    if (asking_) return asked_;
    return due_ ? Want(now) : 0;
  }
  bool asking() const noexcept { return asking_; }
  /// How long the store took for its last answer; 0: it has not answered yet.
  Nanos took() const noexcept { return took_; }
  /// How long permits must last when a check takes them that also needs the store: at least twice
  /// as long as its last answer took.
  Nanos RestForStore() const noexcept { return std::max(terms_.term / 4, 2 * took_); }
  /// True if hardly any permit lasts that long. Retried occasionally: it may have been a delay.
  bool TooSlow(Nanos now) const noexcept {
    return RestForStore() > terms_.term / 2 && now - answered_ < 8 * terms_.term;
  }
  /// False if what was granted came too late to be spent: it is not held, and can be returned.
  bool OnGrant(const Granted& granted, const Flaws& flaws);
  void Failed(Nanos now) noexcept;

  /// The store refused a single check.
  void Refused(Nanos until) noexcept { ask_after_ = dry_until_ = until; }
  /// The store had no more to give; until then it need not be asked.
  bool Dry(Nanos now) const noexcept { return now < dry_until_; }
  /// What to answer without the store: granted from here, or refused because it is dry.
  Decision Estimate(Nanos now, bool granted) const noexcept {
    // Inline: nearly every check ends here, and the processor cannot forward a wide load from the
    // narrower stores that another function has just made to the stack.
    if (!granted) return EstimateDry(now);
    const std::int64_t limit = terms_.quota.limit();
    return {.limit = limit,
            .remaining = std::min(limit, known_.remaining + held_),
            .reset_after = known_.reset_after};
  }

  /// Drops what can no longer be spent and returns how many permits that was.
  std::int64_t Expire(Nanos now);
  /// Removes and returns all grants, for the caller to return to the store.
  std::vector<Lot> Surrender();

 private:
  Nanos half() const noexcept { return terms_.term / 2; }
  Lot* Find(std::uint64_t id) noexcept;
  void GrantedNone(const Granted& granted) noexcept;
  Decision EstimateDry(Nanos now) const noexcept;

  algorithm::LeaseTerms terms_;
  std::vector<Lot> lots_;  // oldest first
  std::int64_t held_ = 0;  // sum of left
  Demand demand_;
  bool asking_ = false;
  bool due_ = false;
  bool share_due_ = false;
  std::int64_t asked_ = 0;
  Nanos took_ = 0;
  Nanos answered_ = 0;  // when
  Nanos ask_after_ = 0;
  Nanos dry_until_ = 0;
  Nanos window_ends_ = 0;  // by the node's clock: of the last grant
  Decision known_;         // the last decision of the store
  RateShare share_;
};

}  // namespace weir::store::lease
