#include "policy/policy_set.h"

#include <algorithm>
#include <array>
#include <utility>

#include "policy/charging.h"
#include "policy/domains.h"
#include "policy/keys.h"

namespace weir::policy {
namespace {

std::uint64_t Mix(std::uint64_t hash, std::uint64_t value) noexcept {
  hash ^= value + 0x9e3779b97f4a7c15U + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdU;
}

}  // namespace

void PolicySet::Match(std::string_view domain, Descriptor descriptor, MatchBuffer& buffer,
                      bool keep_replaced) const {
  buffer.applying.clear();
  buffer.values.clear();
  buffer.candidates_.clear();
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
      // A shadow policy is judged as if it were enforced, but does not replace an enforced one.
      const Policy* over = candidate.enforced_over;
      if (over == nullptr && policy.definition.shadow) over = candidate.shadow_over;
      if (over != nullptr && !keep_replaced) continue;
      buffer.applying.push_back({&policy, candidate.values_begin, over});
    }
  }
}

void PolicySet::TryShape(std::uint32_t shape, Descriptor descriptor, const Entry* anchor,
                         MatchBuffer& buffer) const {
  const std::vector<Field>& fields = shapes_[shape].fields;
  std::array<std::string_view, kMaxMatchEntries> values;
  const std::size_t any_begin = buffer.values.size();
  std::uint64_t hash = shape;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    const Entry* entry = anchor;
    if (anchor == nullptr || anchor->key != field.name) {
      entry = std::find_if(descriptor.data(), descriptor.data() + descriptor.size(),
                           [&](const Entry& one) { return one.key == field.name; });
    }
    const bool here = entry != descriptor.data() + descriptor.size() &&
                      (field.kind != MatchKind::kPrefix || entry->value.size() >= field.length);
    if (!here) {
      buffer.values.resize(any_begin);
      return;
    }
    if (field.kind == MatchKind::kAny) {
      buffer.values.push_back(entry->value);
      continue;
    }
    values[i] =
        field.kind == MatchKind::kExact ? entry->value : entry->value.substr(0, field.length);
    hash = Mix(hash, std::hash<std::string_view>{}(values[i]));
  }
  const std::uint32_t* bucket = FindBucket(shape, hash, std::span(values).first(fields.size()));
  if (bucket == nullptr) {
    buffer.values.resize(any_begin);
    return;
  }
  buffer.candidates_.push_back({*bucket - 1, static_cast<std::uint32_t>(any_begin)});
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

void PolicySet::MarkReplaced(MatchBuffer& buffer) const {
  for (MatchBuffer::Candidate& candidate : buffer.candidates_) {
    const Shape& shape = shapes_[buckets_[candidate.bucket].shape];
    for (const MatchBuffer::Candidate& other : buffer.candidates_) {
      const Bucket& bucket = buckets_[other.bucket];
      const Shape& rival = shapes_[bucket.shape];
      if (rival.family != shape.family || !MoreSpecific(rival, shape)) continue;
      for (const std::uint32_t index : bucket.policies) {
        const Policy& policy = policies_[index];
        (policy.definition.shadow ? candidate.shadow_over : candidate.enforced_over) = &policy;
      }
    }
  }
}

const Policy& PolicySet::ForKey(std::string_view key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? default_ : policies_[found->second];
}

std::string_view PolicySet::Named(std::string_view domain) const {
  return domain.empty() ? std::string_view(implied_domain_) : domain;
}

std::string PolicySet::ImpliedWith(std::string_view domain) const {
  std::vector<std::string_view> names(domain.empty() ? 0 : 1, domain);
  for (const auto& one : domains_) names.push_back(one.first);
  return std::string(ImpliedDomain(names, file_domain_));
}

bool PolicySet::HasDomain(std::string_view domain) const {
  return domains_.find(Named(domain)) != domains_.end();
}

ChargeMode PolicySet::ChargeModeOf(std::string_view domain) const {
  const auto found = domains_.find(Named(domain));
  return found == domains_.end() ? ChargeMode::kAllOrNone : found->second.charge;
}

/// Adds definitions to the indexes of a PolicySet.
struct PolicySet::Builder {
  explicit Builder(PolicySet& target) : set(target) {}

  PolicySet& set;
  TextMap<std::uint32_t> shape_ids;
  TextMap<std::uint32_t> families;
  TextMap<std::uint32_t> names;  // domain + name → policy
  TextMap<std::uint32_t> bucket_ids;
  // Shapes belong to a domain, so that buckets of different domains are never mixed up.
  std::vector<std::string> domain_of;

  // An encoding in which different texts never look the same, whatever bytes they contain.
  static void AppendCounted(std::string& out, std::string_view text) {
    out += std::to_string(text.size());
    out += ':';
    out += text;
  }

  std::uint32_t ShapeOf(const std::string& domain, const std::vector<EntryMatch>& sorted) {
    std::string family;
    AppendCounted(family, domain);
    for (const EntryMatch& entry : sorted) AppendCounted(family, entry.name);
    std::string text = family;
    std::vector<Field> fields;
    for (const EntryMatch& entry : sorted) {
      const auto length =
          static_cast<std::uint32_t>(entry.kind == MatchKind::kPrefix ? entry.text.size() : 0);
      text += '/' + std::to_string(static_cast<int>(entry.kind)) + '.' + std::to_string(length);
      fields.push_back({entry.name, entry.kind, length});
    }
    const auto [at, is_new] =
        shape_ids.try_emplace(std::move(text), static_cast<std::uint32_t>(set.shapes_.size()));
    if (is_new) {
      const auto number = static_cast<std::uint32_t>(families.size());
      const std::uint32_t of = families.try_emplace(std::move(family), number).first->second;
      set.shapes_.push_back({std::move(fields), of});
      domain_of.push_back(domain);
    }
    return at->second;
  }

  void File(std::uint32_t index) {
    const Definition& definition = set.policies_[index].definition;
    std::vector<EntryMatch> sorted = definition.match;
    std::sort(sorted.begin(), sorted.end(),
              [](const EntryMatch& a, const EntryMatch& b) { return a.name < b.name; });
    const std::uint32_t shape = ShapeOf(definition.domain, sorted);
    std::string text = std::to_string(shape) + '/';
    std::uint64_t hash = shape;
    std::vector<std::string> values;
    for (const EntryMatch& entry : sorted) {
      AppendCounted(text, entry.text);
      values.push_back(entry.text);
      if (entry.kind != MatchKind::kAny) {
        hash = Mix(hash, std::hash<std::string_view>{}(entry.text));
      }
    }
    const auto [at, is_new] =
        bucket_ids.try_emplace(std::move(text), static_cast<std::uint32_t>(set.buckets_.size()));
    if (is_new) set.buckets_.push_back({shape, hash, std::move(values), {}});
    set.buckets_[at->second].policies.push_back(index);
  }

  void IndexShapes() {
    TextMap<TextMap<std::uint32_t>> uses;  // domain → name → shapes with it
    for (std::size_t i = 0; i < set.shapes_.size(); ++i) {
      for (const Field& field : set.shapes_[i].fields) ++uses[domain_of[i]][field.name];
    }
    for (std::uint32_t i = 0; i < set.shapes_.size(); ++i) {
      Domain& domain = set.domains_[domain_of[i]];
      const std::vector<Field>& fields = set.shapes_[i].fields;
      if (fields.empty()) {
        domain.nameless.push_back(i);
        continue;
      }
      const TextMap<std::uint32_t>& counts = uses[domain_of[i]];
      const auto rarest =
          std::min_element(fields.begin(), fields.end(), [&](const Field& a, const Field& b) {
            return counts.find(a.name)->second < counts.find(b.name)->second;
          });
      domain.by_name[rarest->name].push_back(i);
    }
  }

  void IndexBuckets() {
    std::size_t size = 8;
    while (size < set.buckets_.size() * 2) size *= 2;
    set.table_.assign(size, 0);
    for (std::uint32_t i = 0; i < set.buckets_.size(); ++i) {
      std::size_t at = set.buckets_[i].hash & (size - 1);
      while (set.table_[at] != 0) at = (at + 1) & (size - 1);
      set.table_[at] = i + 1;
    }
  }
};

Status CheckChargeable(const Definition& definition, const CompileOptions& options) {
  if (Status known = CheckStore(definition, options.stores); !known.ok()) return known;
  if (!definition.quota || definition.mode == Mode::kExact) return {};
  const auto terms = LeaseTermsOf(definition, options.region);
  if (terms.ok()) return {};
  return Error{Code::kInvalidArgument,
               definition.source + ": policy '" + definition.name + "': " + terms.error().message};
}

Result<std::shared_ptr<const PolicySet>> PolicySet::Compile(std::vector<Definition> definitions,
                                                            const CompileOptions& options,
                                                            PolicyIds& ids) {
  if (definitions.size() > kMaxPolicies) {
    return Error{Code::kResourceExhausted,
                 "more than " + std::to_string(kMaxPolicies) + " policies"};
  }
  std::shared_ptr<PolicySet> set(new PolicySet());
  Builder builder(*set);
  const auto compile = [&](Definition definition) {
    Policy policy;
    policy.id = ids.IdOf(definition.domain, definition.name);
    if (definition.quota) policy.local_quota = ShareOf(*definition.quota, options.local_share);
    policy.key_parts = KeyParts(definition);
    if (Status can = CheckChargeable(definition, options); !can.ok() && definition.quota) {
      policy.unable = can.error().message;
      set->any_unable_ = true;
    }
    if (definition.quota && definition.mode != Mode::kExact && options.leasing) {
      auto terms = LeaseTermsOf(definition, options.region);
      if (terms.ok()) policy.lease = *std::move(terms);
    }
    policy.definition = std::move(definition);
    return policy;
  };
  for (const Definition& definition : definitions) {
    if (options.tolerant) break;
    if (Status can = CheckChargeable(definition, options); !can.ok()) return can.error();
  }
  set->default_ = compile(options.default_policy);
  set->policies_.reserve(definitions.size());
  for (Definition& definition : definitions) {
    const auto index = static_cast<std::uint32_t>(set->policies_.size());
    set->policies_.push_back(compile(std::move(definition)));
    const Definition& kept = set->policies_.back().definition;
    const auto clash = [&](std::string_view what, std::string_view text, std::uint32_t other) {
      return Error{Code::kAlreadyExists, kept.source + ": " + std::string(what) + " '" +
                                             std::string(text) + "' is already used by " +
                                             set->policies_[other].definition.source};
    };
    std::string identity;
    Builder::AppendCounted(identity, kept.domain);
    identity += kept.name;
    if (const auto [at, fresh] = builder.names.try_emplace(std::move(identity), index); !fresh) {
      return clash("policy name", kept.name, at->second);
    }
    if (!kept.key.empty()) {
      if (const auto [at, fresh] = set->keys_.try_emplace(kept.key, index); !fresh) {
        return clash("key", kept.key, at->second);
      }
    }
    set->any_replaces_ = set->any_replaces_ || !kept.replaces.empty();
    if (kept.ordered) {
      std::unique_ptr<ChainTree>& chains = set->domains_[kept.domain].chains;
      if (!chains) chains = std::make_unique<ChainTree>();
      if (const auto other = chains->Add(kept.match, index)) {
        return clash("the chain of policy", kept.name, *other);
      }
    } else if (kept.has_match) {
      builder.File(index);
    }
  }
  for (const Policy& policy : set->policies_) {
    if (!policy.definition.has_match) continue;
    ChargeMode& charge = set->domains_[policy.definition.domain].charge;
    charge = std::max(charge, policy.definition.charge);
  }
  builder.IndexShapes();
  builder.IndexBuckets();
  set->directory_.emplace(set->policies_);
  set->file_domain_ = options.file_domain;
  set->implied_domain_ = set->ImpliedWith({});
  return std::shared_ptr<const PolicySet>(std::move(set));
}

void LivePolicies::Publish(std::shared_ptr<const PolicySet> next) {
  const std::lock_guard lock(mutex_);
  current_.swap(next);
  version_.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<const PolicySet> LivePolicies::Current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

}  // namespace weir::policy
