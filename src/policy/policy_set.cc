#include "policy/policy_set.h"

#include <algorithm>
#include <utility>

#include "policy/charging.h"
#include "policy/domains.h"
#include "policy/keys.h"

namespace weir::policy {
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
        hash = MixIn(hash, entry.text);
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
