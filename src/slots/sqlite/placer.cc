#include "slots/sqlite/placer.h"

#include <algorithm>
#include <numeric>

#include "slots/window.h"

namespace weir::slots::sqlite {
namespace {

constexpr std::int64_t kMaxListed = 512;

/// One search, in two passes: first, each request's first window at its proportional capacity; then
/// one walk over the open windows that follow, for all that did not fit. Requests are sorted, so a
/// window without room for one has none for those after it.
class Search {
 public:
  Search(const PlaceRules& rules, std::span<const Millis> requested, WindowTable& table)
      : rules_(rules),
        requested_(requested),
        table_(table),
        share_(ShareOf(rules.max, rules.weight, rules.total)),
        placed_(requested.size()),
        ended_(requested.size()) {}

  Result<std::vector<std::optional<Millis>>> Run() {
    if (Status s = FirstPass(); !s.ok()) return s.error();
    if (!left_.empty()) {
      if (Status s = SecondPass(); !s.ok()) return s.error();
    }
    return std::move(placed_);
  }

  /// Whether a request found no room because of rules.last; after Run.
  bool Ended(std::size_t i) const { return ended_[i]; }

 private:
  Status FirstPass();
  Status SecondPass();
  Result<WindowRoom> FindOrCreate(Millis start);
  bool FitsFirst(const WindowRoom& window, Millis requested) const;
  bool HasRoom(const WindowRoom& window, Millis first_open) const;
  Status LoadMore(Millis from, std::size_t waiting);
  bool Beyond(Millis window, Millis first_open) const {
    return (window - first_open) / rules_.size > rules_.headroom;
  }

  const PlaceRules& rules_;
  const std::span<const Millis> requested_;
  WindowTable& table_;
  const std::int64_t share_;
  std::vector<std::optional<Millis>> placed_;
  std::vector<bool> ended_;
  std::vector<std::size_t> left_;  // requests that did not fit into their first windows
  std::vector<WindowRoom> candidates_;
  std::vector<Taken> taken_;  // parallel to candidates_
  Millis next_ = 0;           // the end of the candidates
};

Result<WindowRoom> Search::FindOrCreate(Millis start) {
  Result<std::optional<WindowRoom>> found = table_.Find(start);
  if (!found.ok()) return found.error();
  if (found->has_value()) return **found;
  if (Status s = table_.Create(start, 1); !s.ok()) return s.error();
  return WindowRoom{.start = start};
}

bool Search::FitsFirst(const WindowRoom& window, Millis requested) const {
  const std::int64_t room = FirstWindowCapacity(rules_.max, requested, rules_.size);
  if (window.used >= room) return false;
  return !rules_.shared || rules_.fair_windows == 0 ||
         window.used_by_class < ShareOf(room, rules_.weight, rules_.total);
}

Status Search::FirstPass() {
  std::vector<Taken> taken;
  std::optional<WindowRoom> window;
  for (std::size_t i = 0; i < requested_.size(); ++i) {
    const Millis start = WindowOf(requested_[i], rules_.size);
    if (start > rules_.last) {
      ended_[i] = true;
      continue;
    }
    if (!window || window->start != start) {
      Result<WindowRoom> found = FindOrCreate(start);
      if (!found.ok()) return found.error();
      window = *found;
    }
    if (!FitsFirst(*window, requested_[i])) {
      left_.push_back(i);
      continue;
    }
    placed_[i] = start;
    ++window->used;
    ++window->used_by_class;
    if (taken.empty() || taken.back().window != start) taken.push_back({start, 0});
    ++taken.back().count;
  }
  return table_.Take(taken);
}

bool Search::HasRoom(const WindowRoom& window, Millis first_open) const {
  if (window.used >= rules_.max) return false;
  return !rules_.shared || window.used_by_class < share_ ||
         (window.start - first_open) / rules_.size >= rules_.fair_windows;
}

Status Search::SecondPass() {
  std::size_t first = 0;  // the first candidate that is not full
  std::size_t at = 0;     // the first one with room for this class
  for (std::size_t k = 0; k < left_.size(); ++k) {
    const std::size_t i = left_[k];
    const Millis from = WindowOf(requested_[i], rules_.size) + rules_.size;
    for (;;) {
      const auto passed = [&](const WindowRoom& w) {
        return w.start < from || w.used >= rules_.max;
      };
      while (first < candidates_.size() && passed(candidates_[first])) ++first;
      const bool any_open = first < candidates_.size();
      const Millis first_open = any_open ? candidates_[first].start : 0;
      while (at < candidates_.size() &&
             (candidates_[at].start < from || !HasRoom(candidates_[at], first_open))) {
        ++at;
      }
      const Millis more = std::max(from, next_);
      if ((at < candidates_.size() ? candidates_[at].start : more) > rules_.last) {
        ended_[i] = true;
        break;
      }
      if (at < candidates_.size()) {
        if (Beyond(candidates_[at].start, first_open)) break;
        placed_[i] = candidates_[at].start;
        ++candidates_[at].used;
        ++candidates_[at].used_by_class;
        ++taken_[at].count;
        break;
      }
      if (more > kMaxInstant || (any_open && Beyond(more, first_open))) break;
      if (Status s = LoadMore(more, left_.size() - k); !s.ok()) return s;
    }
  }
  std::erase_if(taken_, [](const Taken& taken) { return taken.count == 0; });
  return table_.Take(taken_);
}

Status Search::LoadMore(Millis from, std::size_t waiting) {
  const std::int64_t needed = static_cast<std::int64_t>(waiting) / rules_.max + 2;
  const auto count = static_cast<std::size_t>(
      std::clamp<std::int64_t>(needed, rules_.shared ? 128 : 4, kMaxListed));
  Result<std::optional<WindowRoom>> here = table_.Find(from);
  if (!here.ok()) return here.error();
  if (!here->has_value()) {
    if (Status s = table_.Create(from, count); !s.ok()) return s;
  }
  Result<std::vector<WindowRoom>> open = table_.ListOpen(from, count);
  if (!open.ok()) return open.error();
  if (open->empty()) return Error{Code::kInternal, "slots: a full window has no successor"};
  for (const WindowRoom& window : *open) {
    candidates_.push_back(window);
    taken_.push_back({window.start, 0});
  }
  next_ = candidates_.back().start + rules_.size;
  return {};
}

}  // namespace

Result<std::vector<std::optional<Millis>>> Place(const PlaceRules& rules,
                                                 std::span<const Millis> requested,
                                                 std::span<const OpenTime> open,
                                                 WindowTable& table) {
  if (open.empty()) {
    PlaceRules always = rules;
    always.last = kMaxInstant + 1 - rules.size;  // no event has a time beyond kMaxInstant
    return Search(always, requested, table).Run();
  }
  std::vector<std::optional<Millis>> placed(requested.size());
  std::vector<std::size_t> waiting(requested.size());
  std::iota(waiting.begin(), waiting.end(), std::size_t{0});
  for (const OpenTime& time : open) {
    std::vector<Millis> wanted;
    for (std::size_t i : waiting) {
      if (requested[i] >= time.until) break;  // they are sorted
      wanted.push_back(std::max(requested[i], time.from));
    }
    if (wanted.empty()) continue;
    PlaceRules here = rules;
    here.last = time.until - rules.size;
    Search search(here, wanted, table);
    auto found = search.Run();
    if (!found.ok()) return found.error();
    std::vector<std::size_t> still;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      placed[waiting[k]] = (*found)[k];
      if (search.Ended(k)) still.push_back(waiting[k]);
    }
    still.insert(still.end(), waiting.begin() + static_cast<std::ptrdiff_t>(wanted.size()),
                 waiting.end());
    waiting = std::move(still);
    if (waiting.empty()) break;
  }
  return placed;
}

}  // namespace weir::slots::sqlite
