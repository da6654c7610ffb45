// Which policies of a PolicySet apply to a descriptor.

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "policy/policy_set.h"

namespace weir::policy {
namespace {

// Combinations of entries with the same name that one match tries beside the first. A shape with
// several names has a combination for each way to choose one entry of each. What a match costs
// grows with the square of their number.
constexpr std::uint32_t kMostRepeats = 64;

}  // namespace

/// The entries of a descriptor that stand for the fields of a shape.
struct PolicySet::Choice {
  std::uint32_t shape;
  Descriptor descriptor;
  const Entry* anchor;  // the one to be tried, of those with its name; null: there are no fields
  std::array<const Entry*, kMaxMatchEntries> entries;
};

std::uint64_t PolicySet::MixIn(std::uint64_t hash, std::string_view value) noexcept {
  hash ^= std::hash<std::string_view>{}(value) + 0x9e3779b97f4a7c15U + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdU;
}

void PolicySet::Match(std::string_view domain, Descriptor descriptor, MatchBuffer& buffer,
                      bool keep_replaced) const {
  buffer.applying.clear();
  buffer.values.clear();
  buffer.cut = false;
  buffer.candidates_.clear();
  buffer.entries_.clear();
  buffer.repeats_ = 0;
  const auto found = domains_.find(Named(domain));
  if (found == domains_.end()) return;
  for (const Entry& entry : descriptor) {
    const auto shapes = found->second.by_name.find(entry.key);
    if (shapes == found->second.by_name.end()) continue;
    for (const std::uint32_t shape : shapes->second) TryShape(shape, descriptor, &entry, buffer);
  }
  for (const std::uint32_t shape : found->second.nameless) {
    TryShape(shape, descriptor, nullptr, buffer);
  }
  if (found->second.chains) {
    const auto begin = static_cast<std::uint32_t>(buffer.values.size());
    const auto chained = found->second.chains->Find(descriptor, buffer.values);
    if (chained && !policies_[*chained].definition.exempt) {
      buffer.applying.push_back({&policies_[*chained], begin, nullptr});
    }
  }
  if (buffer.candidates_.size() > 1) MarkReplaced(buffer);
  for (const MatchBuffer::Candidate& candidate : buffer.candidates_) {
    for (const std::uint32_t index : buckets_[candidate.bucket].policies) {
      const Policy& policy = policies_[index];
      // A shadow policy is judged as if it were enforced, but takes no enforced one's place.
      const Policy* over = candidate.enforced_over;
      if (over == nullptr && policy.definition.shadow) over = candidate.shadow_over;
      if (over != nullptr && !keep_replaced) continue;
      buffer.applying.push_back({&policy, candidate.values_begin, over});
    }
  }
}

void PolicySet::TryShape(std::uint32_t shape, Descriptor descriptor, const Entry* anchor,
                         MatchBuffer& buffer) const {
  Choice choice{.shape = shape, .descriptor = descriptor, .anchor = anchor, .entries = {}};
  Choose(choice, 0, buffer);
}

/// Each entry that may stand for this field, with all that may for the fields after it.
void PolicySet::Choose(Choice& choice, std::size_t at, MatchBuffer& buffer) const {
  const std::vector<Field>& fields = shapes_[choice.shape].fields;
  if (at == fields.size()) return TryEntries(choice, buffer);
  const Field& field = fields[at];
  const bool anchored = choice.anchor->key == field.name;
  bool repeated = false;
  for (const Entry& entry : choice.descriptor) {
    if (anchored ? &entry != choice.anchor : entry.key != field.name) continue;
    if (field.kind == MatchKind::kPrefix && entry.value.size() < field.length) continue;
    if (std::exchange(repeated, true) && ++buffer.repeats_ > kMostRepeats) buffer.cut = true;
    if (buffer.cut) return;
    choice.entries[at] = &entry;
    Choose(choice, at + 1, buffer);
  }
}

void PolicySet::TryEntries(const Choice& choice, MatchBuffer& buffer) const {
  const std::vector<Field>& fields = shapes_[choice.shape].fields;
  std::array<std::string_view, kMaxMatchEntries> values;
  const std::size_t any_begin = buffer.values.size();
  std::uint64_t hash = choice.shape;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string_view value = choice.entries[i]->value;
    if (fields[i].kind == MatchKind::kAny) {
      buffer.values.push_back(value);
      continue;
    }
    values[i] = fields[i].kind == MatchKind::kExact ? value : value.substr(0, fields[i].length);
    hash = MixIn(hash, values[i]);
  }
  const std::uint32_t* bucket =
      FindBucket(choice.shape, hash, std::span(values).first(fields.size()));
  if (bucket == nullptr) {
    buffer.values.resize(any_begin);
    return;
  }
  const MatchBuffer::Candidate found{
      .bucket = *bucket - 1,
      .values_begin = static_cast<std::uint32_t>(any_begin),
      .entries_begin = static_cast<std::uint32_t>(buffer.entries_.size())};
  buffer.entries_.insert(buffer.entries_.end(), choice.entries.begin(),
                         choice.entries.begin() + static_cast<std::ptrdiff_t>(fields.size()));
  const auto again = [&](const MatchBuffer::Candidate& other) {
    return other.bucket == found.bucket && buffer.SameValues(other, found, fields.size());
  };
  if (std::ranges::none_of(buffer.candidates_, again)) buffer.candidates_.push_back(found);
}

bool MatchBuffer::SameValues(const Candidate& a, const Candidate& b, std::size_t fields) const {
  const std::span<const Entry* const> all = entries_;
  return std::ranges::equal(
      all.subspan(a.entries_begin, fields), all.subspan(b.entries_begin, fields),
      [](const Entry* one, const Entry* other) { return one->value == other->value; });
}

const std::uint32_t* PolicySet::FindBucket(std::uint32_t shape, std::uint64_t hash,
                                           std::span<const std::string_view> values) const {
  const std::size_t mask = table_.size() - 1;
  for (std::size_t at = hash & mask; table_[at] != 0; at = (at + 1) & mask) {
    const Bucket& bucket = buckets_[table_[at] - 1];
    if (bucket.hash == hash && bucket.shape == shape &&
        std::equal(values.begin(), values.end(), bucket.values.begin())) {
      return &table_[at];
    }
  }
  return nullptr;
}

bool PolicySet::MoreSpecific(const Shape& one, const Shape& other) {
  const auto rank = [](const Field& field) {
    return std::pair(field.kind, field.kind == MatchKind::kPrefix ? field.length : 0U);
  };
  bool more = false;
  for (std::size_t i = 0; i < one.fields.size(); ++i) {
    const auto mine = rank(one.fields[i]);
    const auto theirs = rank(other.fields[i]);
    if (mine < theirs) return false;
    more = more || mine > theirs;
  }
  return more;
}

/// A policy replaces another one for the same values only: beside an entry that it was not written
/// for, the limit of that entry stays.
void PolicySet::MarkReplaced(MatchBuffer& buffer) const {
  for (MatchBuffer::Candidate& candidate : buffer.candidates_) {
    const Shape& shape = shapes_[buckets_[candidate.bucket].shape];
    for (const MatchBuffer::Candidate& other : buffer.candidates_) {
      const Bucket& bucket = buckets_[other.bucket];
      if (bucket.shape == buckets_[candidate.bucket].shape) continue;
      const Shape& rival = shapes_[bucket.shape];
      if (rival.family != shape.family || !MoreSpecific(rival, shape)) continue;
      if (!buffer.SameValues(candidate, other, shape.fields.size())) continue;
      for (const std::uint32_t index : bucket.policies) {
        const Policy& policy = policies_[index];
        (policy.definition.shadow ? candidate.shadow_over : candidate.enforced_over) = &policy;
      }
    }
  }
}

}  // namespace weir::policy
