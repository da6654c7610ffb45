#include "telemetry/space_saving.h"

#include <algorithm>

namespace weir::telemetry {

SpaceSaving::SpaceSaving(std::size_t capacity) : capacity_(capacity) {
  // The index holds views of the texts, so the entries must never move.
  entries_.reserve(capacity);
  counts_.reserve(capacity);
}

void SpaceSaving::Add(std::string_view text, std::uint64_t weight, std::uint32_t tag) {
  if (const auto found = index_.find(text); found != index_.end()) {
    Entry& entry = entries_[found->second];
    entry.count += weight;
    entry.tag = tag;
    counts_[found->second] = entry.count;
    return;
  }
  std::size_t place = entries_.size();
  if (place < capacity_) {
    entries_.push_back({std::string(text), weight, 0, tag});
    counts_.push_back(weight);
  } else {
    place = Smallest();
    Entry& entry = entries_[place];
    index_.erase(entry.text);
    entry.text = text;
    entry.error = entry.count;
    entry.count += weight;
    entry.tag = tag;
    counts_[place] = entry.count;
  }
  index_.emplace(entries_[place].text, place);
}

void SpaceSaving::Clear() {
  index_.clear();
  entries_.clear();
  counts_.clear();
}

const SpaceSaving::Entry* SpaceSaving::Find(std::string_view text) const {
  const auto found = index_.find(text);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

std::uint64_t SpaceSaving::floor() const noexcept {
  return entries_.size() < capacity_ ? 0 : counts_[Smallest()];
}

std::size_t SpaceSaving::Smallest() const noexcept {
  return static_cast<std::size_t>(std::min_element(counts_.begin(), counts_.end()) -
                                  counts_.begin());
}

}  // namespace weir::telemetry
