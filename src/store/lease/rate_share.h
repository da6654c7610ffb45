#pragma once

// A node's share of the rate of one key: units that it has reserved in the store, and the bucket
// that it refills by itself as long as they last. No clock, no store: the time is passed with every
// call, always the node's. Why all shares together never exceed the quota: docs/design/leases.md.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "algorithm/lease.h"
#include "base/int128.h"
#include "store/lease/flaws.h"
#include "weir/clock.h"
#include "weir/quota.h"

namespace weir::store::lease {

/// The average interval between a node's requests for units. Each is random, from three quarters of
/// half a term to all of it, so that nodes do not synchronize.
Nanos AskEvery(const algorithm::RateTerms& terms) noexcept;

/// How a key's shares are stored: kShareUnits that are held for a term (under the key plus
/// kUnitsSuffix), and a count of recent wants of all nodes (kWantsSuffix), which grants everything.
Quota UnitsQuota(const algorithm::RateTerms& terms);
Quota WantsQuota(const algorithm::RateTerms& terms);
inline constexpr std::string_view kUnitsSuffix = "|%share";
inline constexpr std::string_view kWantsSuffix = "|%wants";

/// Units reserved by one grant.
struct Reserved {
  std::int64_t units = 0;
  std::int64_t name = 0;  ///< given by the store, to release it by
  Nanos until = 0;        ///< the last moment at which it counts, by the node's clock
};

/// Not thread-safe.
class RateShare {
 public:
  /// `epoch`: no other share of a leasing store has it or one of the 2^20 after it.
  RateShare(const algorithm::RateTerms& terms, std::uint64_t epoch, Nanos now);

  /// False: the policy has no shares, and nothing below has any effect.
  bool on() const noexcept { return terms_.refill > 0; }

  /// Counts a check, wherever it is decided.
  void Note(Nanos now, std::int64_t cost);
  /// The rest of the quota refused a check: a share is needed, however few checks there are.
  void Refused(Nanos now) noexcept { refused_ = now; }
  /// True if there are units that count.
  bool active(Nanos now) const noexcept {
    return !reserved_.empty() && reserved_.back().until >= now;
  }
  bool slack(Nanos now) const noexcept { return !reserved_.empty() && now - noted_ > half(); }
  bool idle(Nanos now) const noexcept {
    return !asking_ && reserved_.empty() && now - noted_ > terms_.term;
  }
  std::int64_t units() const noexcept { return units_; }
  /// The number of those that still count.
  std::int64_t UnitsAt(Nanos now) const noexcept;
  /// Permits per second that these units add.
  double PerSecond(Nanos now) const noexcept;

  /// Spends `cost`; false, and nothing is spent, if there are fewer.
  bool Take(Nanos now, std::int64_t cost);
  /// As Take, for a check that is not admitted yet. Returns a mark for the permits, which are valid
  /// as long as Lasts(mark). 0: there are fewer.
  std::uint64_t Hold(Nanos now, std::int64_t cost);
  bool Lasts(Nanos now, std::uint64_t mark);
  void Spend(std::uint64_t mark, std::int64_t cost) noexcept;
  void PutBack(Nanos now, std::uint64_t mark, std::int64_t cost);

  /// What to request from the store.
  struct Question {
    std::int64_t want = 0;        ///< units, for all of the demand: shares are proportional to it
    std::vector<Reserved> ended;  ///< to be released; kMostEnded at most
    std::int64_t keep = 0;        ///< units to reserve again, no more than were released
    std::int64_t more = 0;        ///< units to reserve in addition
  };
  static constexpr std::ptrdiff_t kMostEnded = 2;
  bool ShouldAsk(Nanos now) const noexcept;
  /// `pause`: until the next request.
  Question Ask(Nanos now, Nanos pause);
  struct Answer {
    std::array<Reserved, 2> reserved;  ///< of `keep` and `more`, without `until`
    std::int64_t wants = 0;            ///< of all nodes, recently
    Nanos sent = 0;
    Nanos now = 0;
  };
  void OnAnswer(const Answer& answer, const Flaws& flaws);
  void Failed(Nanos now) noexcept;

  /// Removes and returns everything reserved, to be released.
  std::vector<Reserved> Surrender();

 private:
  Nanos half() const noexcept { return terms_.term / 2; }
  std::int64_t Want(Nanos now) const noexcept;
  Int128 Cap() const noexcept;
  void Fill(Nanos now);
  void FillTo(Nanos now) noexcept;
  std::vector<Reserved> GiveUpOldest(Nanos now);
  void Fit() noexcept;

  algorithm::RateTerms terms_;
  std::vector<Reserved> reserved_;  // in the order of their ends
  std::int64_t units_ = 0;          // sum of reserved_
  // Permits times (kDriftParts + 1) * period * kShareUnits: refills are then whole numbers.
  Int128 scale_ = 0;
  Int128 level_ = 0;
  std::int64_t pending_ = 0;  // permits that are held for undecided checks
  std::uint64_t epoch_;       // of these permits; a new one begins when they are void
  Nanos filled_ = 0;
  // Demand, in halves of a term.
  Nanos slot_began_;
  std::int64_t checks_ = 0;
  std::int64_t cost_ = 0;
  std::int64_t cost_before_ = 0;
  Nanos noted_;
  std::optional<Nanos> refused_;
  bool asking_ = false;
  bool busy_ = false;  // checked often enough
  Nanos ask_after_ = 0;
  Nanos ask_early_ = 0;  // if much more is wanted than before
  std::int64_t asked_want_ = 0;
  std::int64_t asked_more_ = 0;
  std::int64_t target_ = 0;  // units
  std::int64_t wants_ = 0;
};

}  // namespace weir::store::lease
