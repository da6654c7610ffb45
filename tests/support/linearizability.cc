#include "support/linearizability.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace weir::test {
namespace {

using Records = std::vector<CheckRecord>;

/// The checks that can only have been decided in one window, and those that may also have been
/// decided in the next.
struct Window {
  Records grants;
  Records denials;
  Records crossing_grants;
  Records crossing_denials;
};
using Windows = std::map<std::int64_t, Window>;

bool BySending(const CheckRecord& a, const CheckRecord& b) { return a.sent < b.sent; }

/// A grant that may belong to three or more windows may also be why others were denied in each of
/// them: it is left out with those denials. A violation found in the rest is still certain.
void LeaveOutLongest(Records& history, std::int64_t window) {
  const auto is_long = [window](const CheckRecord& record) {
    return record.answered / window - record.sent / window > 1;
  };
  Records grants;
  std::copy_if(history.begin(), history.end(), std::back_inserter(grants),
               [&](const CheckRecord& record) { return record.allowed && is_long(record); });
  std::erase_if(history, [&](const CheckRecord& record) {
    return is_long(record) ||
           (!record.allowed &&
            std::any_of(grants.begin(), grants.end(), [&](const CheckRecord& grant) {
              return record.answered / window >= grant.sent / window &&
                     record.sent / window <= grant.answered / window;
            }));
  });
}

/// The part of a window's result that matters to the next.
struct Outcome {
  std::size_t passed_on = 0;  // crossing grants that were decided in the next one
  bool full = false;

  friend auto operator<=>(const Outcome&, const Outcome&) = default;  // NOLINT: no pointer here
};

/// Whether the window's answers are right if the last `before.passed_on` crossing grants of
/// `previous` and the first `here` of its own were decided in it. Of the crossing grants, those
/// sent first are assigned to the earlier window: they fit there at least as well.
std::optional<Outcome> TryWindow(const Window& previous, const Outcome& before,
                                 const Window& window, std::size_t here, std::int64_t limit) {
  const std::size_t count = window.grants.size() + before.passed_on + here;
  if (static_cast<std::int64_t>(count) > limit) return std::nullopt;
  const bool full = static_cast<std::int64_t>(count) == limit;
  // When the last grant of this window was sent; those passed on were sent before it began.
  std::int64_t last = 0;
  for (const CheckRecord& grant : window.grants) last = std::max(last, grant.sent);
  if (here > 0) last = std::max(last, window.crossing_grants[here - 1].sent);
  const auto right_here = [&](const CheckRecord& denial) {
    return full && last <= denial.answered;
  };
  if (!std::all_of(window.denials.begin(), window.denials.end(), right_here)) return std::nullopt;
  for (const CheckRecord& denial : previous.crossing_denials) {
    if (!before.full && !right_here(denial)) return std::nullopt;
  }
  return Outcome{window.crossing_grants.size() - here, full};
}

std::optional<std::string> Search(Windows& windows, std::int64_t limit) {
  const Window none;
  const Window* previous = &none;
  std::int64_t previous_number = -2;
  std::set<Outcome> outcomes = {Outcome{}};
  for (auto& [number, window] : windows) {
    if (number != previous_number + 1) {
      previous = &none;
      outcomes = {Outcome{}};
    }
    std::sort(window.crossing_grants.begin(), window.crossing_grants.end(), BySending);
    std::set<Outcome> next;
    for (const Outcome& before : outcomes) {
      for (std::size_t here = 0; here <= window.crossing_grants.size(); ++here) {
        const auto outcome = TryWindow(*previous, before, window, here, limit);
        if (outcome) next.insert(*outcome);
      }
    }
    if (next.empty()) {
      return "no order explains the answers in window " + std::to_string(number) + ": " +
             std::to_string(window.grants.size()) + " grants and " +
             std::to_string(window.crossing_grants.size()) + " that may be of the next window, " +
             std::to_string(window.denials.size()) + " denials, limit " + std::to_string(limit);
    }
    outcomes = std::move(next);
    previous = &window;
    previous_number = number;
  }
  return std::nullopt;
}

/// An ideal bucket, in nanoseconds of refill.
class Bucket {
 public:
  Bucket(std::int64_t capacity, std::int64_t nanos_per_permit)
      : most_(capacity * nanos_per_permit), each_(nanos_per_permit), level_(most_) {}

  /// The content at `time`, which must not decrease. May be negative: more was taken than there
  /// was.
  std::int64_t At(std::int64_t time) {
    if (started_) level_ = std::min(most_, level_ + (time - time_));
    started_ = true;
    time_ = time;
    return level_;
  }
  void Take() { level_ -= each_; }

 private:
  const std::int64_t most_;
  const std::int64_t each_;
  std::int64_t level_;
  std::int64_t time_ = 0;
  bool started_ = false;
};

/// Over any span, no more than a full bucket plus the refill can be granted.
std::optional<std::string> TooManyGrants(Records grants, std::int64_t capacity,
                                         std::int64_t nanos_per_permit) {
  std::sort(grants.begin(), grants.end(),
            [](const auto& a, const auto& b) { return a.answered < b.answered; });
  // Spans from the sending of one to the answer of another; only grants wholly within are counted.
  for (std::size_t first = 0; first < grants.size(); ++first) {
    std::int64_t within = 0;
    for (const CheckRecord& grant : grants) {
      if (grant.sent < grants[first].sent) continue;
      ++within;
      const std::int64_t span = grant.answered - grants[first].sent;
      if (within > capacity + span / nanos_per_permit) {
        return std::to_string(within) + " grants within " + std::to_string(span) + " ns";
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> ExplainFixedWindow(std::vector<CheckRecord> history, std::int64_t limit,
                                              std::int64_t window) {
  LeaveOutLongest(history, window);
  Windows windows;
  for (const CheckRecord& record : history) {
    const std::int64_t from = record.sent / window;
    const std::int64_t to = record.answered / window;
    if (record.answered < record.sent) return "a check was answered before it was sent";
    const bool crossing = from != to;
    if (crossing) windows[to];
    Window& its = windows[from];
    if (record.allowed) {
      (crossing ? its.crossing_grants : its.grants).push_back(record);
    } else {
      (crossing ? its.crossing_denials : its.denials).push_back(record);
    }
  }
  return Search(windows, limit);
}

std::optional<std::string> ExplainTokenBucket(std::vector<CheckRecord> history,
                                              std::int64_t capacity,
                                              std::int64_t nanos_per_permit) {
  Records grants;
  std::copy_if(history.begin(), history.end(), std::back_inserter(grants),
               [](const CheckRecord& record) { return record.allowed; });
  if (auto reason = TooManyGrants(grants, capacity, nanos_per_permit)) return reason;
  std::sort(grants.begin(), grants.end(),
            [](const auto& a, const auto& b) { return a.answered < b.answered; });
  for (const CheckRecord& denial : history) {
    if (denial.allowed) continue;
    // The minimum that the bucket can have held: every grant that may have been decided before was,
    // and as late as possible.
    Bucket bucket(capacity, nanos_per_permit);
    for (const CheckRecord& grant : grants) {
      if (grant.sent > denial.answered) continue;
      static_cast<void>(bucket.At(std::min(grant.answered, denial.answered)));
      bucket.Take();
    }
    // It may have been decided when it was sent, before some of that was refilled.
    const std::int64_t least = bucket.At(denial.answered) - (denial.answered - denial.sent);
    if (least >= nanos_per_permit) {
      return "refused at " + std::to_string(denial.answered) + " though a permit was left";
    }
  }
  return std::nullopt;
}

}  // namespace weir::test
