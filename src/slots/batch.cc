#include "slots/batch.h"

#include <algorithm>
#include <unordered_map>

namespace weir::slots {

Batch::Batch(std::span<const Ask> asks) {
  std::unordered_map<std::string_view, std::size_t> first;
  first.reserve(asks.size());
  std::unordered_map<std::string_view, std::size_t> group_of;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const auto [seen, is_new] = first.try_emplace(asks[i].event_id, i);
    if (!is_new) {
      repeats_.push_back({i, seen->second});
      continue;
    }
    const auto [group, is_new_group] = group_of.try_emplace(asks[i].config, groups_.size());
    if (is_new_group) groups_.push_back({asks[i].config, {}});
    groups_[group->second].asks.push_back(i);
  }
  for (ConfigGroup& group : groups_) {
    std::stable_sort(group.asks.begin(), group.asks.end(), [asks](std::size_t a, std::size_t b) {
      return asks[a].requested < asks[b].requested;
    });
  }
}

std::vector<std::size_t> Batch::CopyAnswers(std::span<const Ask> asks,
                                            std::vector<Answer>& answers) const {
  std::vector<std::size_t> unknown;
  for (const Repeat& repeat : repeats_) {
    const Ask& ask = asks[repeat.ask];
    const Ask& first = asks[repeat.first];
    Answer& answer = answers[repeat.ask];
    answer = answers[repeat.first];
    if (answer.outcome != Outcome::kNew && !WasThere(answer.outcome)) {
      const bool as_refused = ask.config == first.config && ask.requested == first.requested &&
                              ask.tenant == first.tenant;
      if (!as_refused) unknown.push_back(repeat.ask);
      continue;
    }
    const auto asks_for = [&slot = answer.slot](const Ask& one) {
      return one.config == slot.config && one.requested == slot.requested &&
             one.tenant == slot.tenant;
    };
    const bool same_payload = ask.payload == first.payload;
    const bool same = asks_for(ask);
    // Only a first one that differs in its payload alone, and is the same, says what is wrong.
    const bool same_as_first = same_payload && asks_for(first);
    if (same && !same_as_first && answer.outcome == Outcome::kConflict) {
      unknown.push_back(repeat.ask);
    }
    if (!same || !same_payload) answer.outcome = Outcome::kConflict;
    if (answer.outcome == Outcome::kNew) answer.outcome = Outcome::kExisting;
  }
  return unknown;
}

}  // namespace weir::slots
