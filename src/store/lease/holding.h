#pragma once

// What a node knows of one key of a leased policy: how often it is asked for, and the permits it
// holds. No clock, no store: time comes with every call, always that of the node.

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
  std::uint64_t id = 0;  ///< no two grants of a leasing store have the same
  std::int64_t left = 0;
  std::int64_t spent = 0;    ///< for checks that were admitted
  std::int64_t pending = 0;  ///< taken for checks that are not decided yet
  std::int64_t lent = 0;     ///< to nodes of a region, which may or may not have spent them
  Nanos at = 0;              ///< the store's time, which names the grant
  Nanos until = 0;           ///< the last moment at which they may be spent, by the node's clock
};

/// Permits that were spent of one grant, and until when they last.
struct Taken {
  std::uint32_t position = 0;  ///< of the charge they were spent for
  std::uint64_t lot = 0;
  std::int64_t count = 0;
  Nanos until = 0;
  std::uint64_t share = 0;  ///< if not 0: not of a grant, but held by a share under this mark
  std::int64_t permit = 0;  ///< if not 0: the name of a permit in stock; `lot` is the stock's id
  bool held = false;        ///< of a grant, for a check that is not decided yet
  bool lent = false;        ///< of a grant, to a node of a region
  bool refund = false;      ///< nothing was: what a client gives back is put back then
};

/// What the store granted to one question.
struct Granted {
  LeaseGrant grant;
  std::uint64_t id = 0;
  std::int64_t want = 0;
  Nanos sent = 0;
  Nanos now = 0;
  Nanos pause = 0;       ///< how long to let the store alone if it gave less than was asked for
  bool patient = false;  ///< for all of `pause`, even if it will have some sooner
};

/// Not thread-safe.
class Holding {
 public:
  /// `epoch`: as for RateShare.
  Holding(const algorithm::LeaseTerms& terms, Nanos now, std::uint64_t epoch = 0);

  const algorithm::LeaseTerms& terms() const noexcept { return terms_; }
  /// Beside the permits: what is reserved of the rate.
  RateShare& share() noexcept { return share_; }
  const RateShare& share() const noexcept { return share_; }

  /// As those of Demand.
  void Note(Nanos now, std::int64_t cost);
  void Pass(Nanos now) { demand_.Pass(now); }
  bool leased() const noexcept { return demand_.leased(); }
  void Insist() noexcept { demand_.Insist(); }
  /// No request for so long that what is held is better given back.
  bool slack(Nanos now) const noexcept {
    return held_ > 0 && now - demand_.noted() > terms_.term / 4;
  }
  /// Nobody has asked for a while, and nothing is held.
  bool idle(Nanos now) const noexcept;

  /// Permits that can be spent at `now` and for `rest` longer.
  std::int64_t Available(Nanos now, Nanos rest = 0) const noexcept;
  /// Spends `cost` for the charge at `position`, the oldest first, and adds what was spent to
  /// `taken`. False, and nothing is spent, if there are fewer.
  bool Take(Nanos now, std::int64_t cost, Nanos rest, std::uint32_t position,
            std::vector<Taken>& taken);
  /// The same for a check that is admitted by it, whatever grants they are of. `cost` is positive.
  bool Take(Nanos now, std::int64_t cost);
  /// As Take, for a check that is not decided yet: then comes Spend or PutBack of each part. Until
  /// then nothing of it can be refunded, since nothing of it was admitted.
  bool Hold(Nanos now, std::int64_t cost, Nanos rest, std::uint32_t position,
            std::vector<Taken>& taken);
  void Spend(const Taken& held) noexcept;
  /// Lends a node up to `want` permits of one grant, of those that last for `rest`: the first of
  /// want, want / 2, … that is there, as the stores do. A count of 0: there are none. Only the node
  /// can give them back: no refund does, since they may not have been spent yet.
  Taken Lend(Nanos now, std::int64_t want, Nanos rest);
  /// Takes back what was spent but not used after all, if its grant still lasts: permits of another
  /// grant have another term. Returns how many that were.
  std::int64_t PutBack(Nanos now, const Taken& taken);
  /// A request that was admitted did not happen after all. Of which grant its permits were is not
  /// known; it may be any of which at least as many were spent.
  std::int64_t Refund(Nanos now, std::int64_t cost);
  std::int64_t held() const noexcept { return held_; }

  /// True if it is time to ask the store for more.
  bool ShouldAsk(Nanos now) const noexcept { return ShouldAsk(now, 0); }
  /// The same where permits are of use only for `rest` longer.
  bool ShouldAsk(Nanos now, Nanos rest) const noexcept;
  /// Notes that more is to be asked for soon: of permits, or of the share. False if that was noted
  /// before.
  bool MarkDue() noexcept { return !std::exchange(due_, true); }
  bool MarkShareDue() noexcept { return !std::exchange(share_due_, true); }
  /// Forgets it, and says whether it was noted.
  bool TakeDue() noexcept { return std::exchange(due_, false); }
  bool TakeShareDue() noexcept { return std::exchange(share_due_, false); }
  /// How many permits to ask for: what five eighths of a term are likely to take, so that all are
  /// spent well before they end, and never more than half of a window's limit.
  std::int64_t Want(Nanos now) const noexcept { return Want(now, 0); }
  std::int64_t Want(Nanos now, Nanos rest) const noexcept;
  void Asked(std::int64_t want) noexcept {
    asking_ = true;
    asked_ = want;
  }
  /// How many permits are on their way at best: were asked for, or will be soon.
  std::int64_t Coming(Nanos now) const noexcept {
    if (asking_) return asked_;
    return due_ ? Want(now) : 0;
  }
  bool asking() const noexcept { return asking_; }
  /// How long the store took to answer the last question; 0: it has answered none.
  Nanos took() const noexcept { return took_; }
  /// For how long permits must last that a check takes for which the store has to be asked as well:
  /// twice as long as it took to answer the last time.
  Nanos RestForStore() const noexcept { return std::max(terms_.term / 4, 2 * took_); }
  /// True if hardly any permit lasts that long. Tried again now and then: it may have been a delay.
  bool TooSlow(Nanos now) const noexcept {
    return RestForStore() > terms_.term / 2 && now - answered_ < 8 * terms_.term;
  }
  /// False if what was granted came too late to be spent: it is not held, and can go back.
  bool OnGrant(const Granted& granted, const Flaws& flaws);
  void Failed(Nanos now) noexcept;

  /// The store refused a single check.
  void Refused(Nanos until) noexcept { ask_after_ = dry_until_ = until; }
  /// The store had no more to give; until then it need not be asked.
  bool Dry(Nanos now) const noexcept { return now < dry_until_; }
  /// What to answer without the store: granted from here, or refused because it is dry.
  Decision Estimate(Nanos now, bool granted) const noexcept {
    // Inline: nearly every check ends with it, and the processor cannot read at once, as a whole,
    // what another function has just written to the stack in parts.
    if (!granted) return EstimateDry(now);
    const std::int64_t limit = terms_.quota.limit();
    return {.limit = limit,
            .remaining = std::min(limit, known_.remaining + held_),
            .reset_after = known_.reset_after};
  }

  /// Drops what can no longer be spent and returns how many permits that were.
  std::int64_t Expire(Nanos now);
  /// All grants, to be given back; nothing is held afterwards.
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
  Decision known_;         // the last the store said
  RateShare share_;
};

}  // namespace weir::store::lease
