#pragma once

// Compiled policies. A request must not pay for the number of policies: each policy is indexed by
// the shape of its match (which entry names; exact, prefix of n bytes, or any) and the values it
// names, so finding those that apply is one hash lookup per shape that the descriptor's entry names
// allow, and shapes are few. 10,000 policies for 10,000 users are one shape.
//
// Among policies that use the same entry names, the more specific one replaces the more general
// one (exact before prefix, longer prefix before shorter, any last); equally specific ones all
// apply, as do policies that use different names. A shadow policy never replaces an enforced
// one.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/lease.h"
#include "base/text_map.h"
#include "policy/chain_tree.h"
#include "policy/charging.h"
#include "policy/definition.h"
#include "policy/directory.h"
#include "policy/request.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir::policy {

/// Numbers for policies that stay the same across reloads, so that counters can be arrays.
/// Thread-safe.
class PolicyIds {
 public:
  /// All policies beyond this many names ever seen share the last number.
  static constexpr std::uint32_t kMax = 200'000;

  struct Name {
    std::string domain;
    std::string policy;
  };

  std::uint32_t IdOf(std::string_view domain, std::string_view policy);
  /// How many numbers there are so far.
  std::uint32_t size() const;
  /// The names of the first `most` numbers.
  std::vector<Name> First(std::size_t most) const;
  /// Nothing if this number is not in use.
  std::optional<Name> NameOf(std::uint32_t id) const;

 private:
  mutable std::mutex mutex_;
  TextMap<std::uint32_t> ids_;
  std::vector<Name> names_;
};

/// One compiled policy. Immutable.
struct Policy {
  Definition definition;
  std::uint32_t id = 0;
  /// The quota that this process grants by itself under on_store_error: local.
  std::optional<Quota> local_quota;
  /// For a leased policy: the terms that its charges are made under instead.
  std::optional<algorithm::LeaseTerms> lease;
  /// Why this process cannot charge it (for instance, the store is not configured); empty: it can.
  /// Its checks are then decided as if its store were down.
  std::string unable = {};
  /// The store's key consists of these, with the escaped values that "*" matched in between.
  std::vector<std::string> key_parts;

  const Quota* quota() const noexcept { return definition.quota ? &*definition.quota : nullptr; }
  /// The quota to read its buckets in the store with. Nodes hold the rest of a rate that is leased.
  const Quota* stored_quota() const noexcept {
    return lease && lease->rate.refill > 0 ? &lease->quota : quota();
  }
};

/// Where a bare key is charged under `policy`, which is for that key or the default: in the key's
/// bucket, or, while the policy is on trial, in a separate one, since the enforced policy charges
/// the key's bucket.
void AppendBucket(std::string& out, const Policy& policy, std::string_view key);

struct CompileOptions {
  /// For bare keys that no policy names. Has a quota or is unlimited; its name is reported.
  Definition default_policy;
  /// The part of a quota that this process grants by itself while the store is down, in (0, 1].
  double local_share = 0.1;
  /// Unknown fields of Envoy's files are skipped.
  bool lenient = false;
  /// The names that policies may use in `store`. nullopt: any, for code that only inspects them.
  std::optional<std::vector<std::string>> stores = {};
  /// False: no permits are leased from where the limits are, so leased policies are charged like
  /// exact ones.
  bool leasing = true;
  RegionOptions region = {};
  /// True: a policy that cannot be charged here is compiled with the reason (Policy::unable). For
  /// policies that other nodes have accepted: one must not keep all others out of force.
  bool tolerant = false;
  /// The only domain of policies in files, if there is one: see ImpliedDomain.
  std::string file_domain = {};
};

/// Whether a process with these options can charge a policy: its store is known and its mode
/// supported.
Status CheckChargeable(const Definition& definition, const CompileOptions& options);

/// The default policy of the service: token bucket, capacity 100, refill 10 per second.
Definition DefaultPolicy();

/// `share` of a quota, at least one permit.
Quota ShareOf(const Quota& quota, double share);

/// A policy that applies to a descriptor, and the values that its "*" entries matched.
struct Applying {
  const Policy* policy;
  std::uint32_t values_begin;  ///< into MatchBuffer::values
  /// The more specific policy that replaces this one; null: it applies. See Match.
  const Policy* replaced_by = nullptr;
};

/// Reused from match to match, so that matching allocates nothing once it is warm. Not thread-safe.
struct MatchBuffer {
  std::vector<Applying> applying;
  std::vector<std::string_view> values;
  /// So many entries have the same names that not all combinations of them were tried: policies may
  /// be missing.
  bool cut = false;

 private:
  friend class PolicySet;
  struct Candidate {
    std::uint32_t bucket;
    std::uint32_t values_begin;
    std::uint32_t entries_begin;
    const Policy* enforced_over = nullptr;  // of a more specific bucket
    const Policy* shadow_over = nullptr;
  };
  /// Whether both matched the same values, field by field.
  bool SameValues(const Candidate& a, const Candidate& b, std::size_t fields) const;

  std::vector<Candidate> candidates_;
  std::vector<const Entry*> entries_;  // that each candidate matched, one for each of its fields
  std::uint32_t repeats_ = 0;
};

/// All policies in force. Immutable, so thread-safe; shared by the reactors.
class PolicySet {
 public:
  /// Fails with kAlreadyExists if two policies of a domain have the same name or two have the same
  /// key; with kInvalidArgument if one cannot be charged (CheckChargeable) and options.tolerant is
  /// false.
  static Result<std::shared_ptr<const PolicySet>> Compile(std::vector<Definition> definitions,
                                                          const CompileOptions& options,
                                                          PolicyIds& ids);

  /// Puts the policies that apply to `descriptor` in buffer.applying. Values are views of the
  /// request. With `keep_replaced`, those that a more specific one replaces are included.
  void Match(std::string_view domain, Descriptor descriptor, MatchBuffer& buffer,
             bool keep_replaced = false) const;

  /// The policy for a bare key: the one that names it, or else the default.
  const Policy& ForKey(std::string_view key) const;

  /// An empty name: the implied one.
  bool HasDomain(std::string_view domain) const;
  /// Where a request belongs that does not name a domain (policy/domains.h).
  const std::string& implied_domain() const noexcept { return implied_domain_; }
  /// As above, if `domain` had a policy, too.
  std::string ImpliedWith(std::string_view domain) const;
  /// The mode of quotas that come with a request.
  ChargeMode ChargeModeOf(std::string_view domain) const;
  /// Whether any policy replaces others (Definition::replaces).
  bool any_replaces() const noexcept { return any_replaces_; }
  /// Whether any policy cannot be charged here (Policy::unable).
  bool any_unable() const noexcept { return any_unable_; }
  const std::vector<Policy>& policies() const noexcept { return policies_; }
  const Policy& default_policy() const noexcept { return default_; }
  /// Without the default policy.
  const Directory& directory() const noexcept { return *directory_; }

 private:
  struct Field {
    std::string name;
    MatchKind kind;
    std::uint32_t length;  // of the prefix
    friend bool operator==(const Field&, const Field&) = default;
  };
  // Fields are sorted by name.
  struct Shape {
    std::vector<Field> fields;
    std::uint32_t family;  // shapes with the same names
  };
  // The policies with one shape and the same values.
  struct Bucket {
    std::uint32_t shape;
    std::uint64_t hash;
    std::vector<std::string> values;  // one per field; empty for kAny
    std::vector<std::uint32_t> policies;
  };
  struct Domain {
    // Shapes by the rarest of their names, so that common names do not collect them all.
    TextMap<std::vector<std::uint32_t>> by_name;
    std::vector<std::uint32_t> nameless;
    std::unique_ptr<ChainTree> chains;           // null if there are none
    ChargeMode charge = ChargeMode::kAllOrNone;  // the strongest that its policies name
  };
  struct Builder;
  struct Choice;

  PolicySet() = default;
  std::string_view Named(std::string_view domain) const;
  // Matching: policy_match.cc.
  static std::uint64_t MixIn(std::uint64_t hash, std::string_view value) noexcept;
  void TryShape(std::uint32_t shape, Descriptor descriptor, const Entry* anchor,
                MatchBuffer& buffer) const;
  void Choose(Choice& choice, std::size_t at, MatchBuffer& buffer) const;
  void TryEntries(const Choice& choice, MatchBuffer& buffer) const;
  const std::uint32_t* FindBucket(std::uint32_t shape, std::uint64_t hash,
                                  std::span<const std::string_view> values) const;
  static bool MoreSpecific(const Shape& one, const Shape& other);
  void MarkReplaced(MatchBuffer& buffer) const;

  std::vector<Policy> policies_;
  Policy default_;
  std::optional<Directory> directory_;
  std::vector<Shape> shapes_;
  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> table_;  // open addressing by hash → bucket index + 1; 0 is free
  TextMap<Domain> domains_;
  std::string file_domain_;
  std::string implied_domain_;
  TextMap<std::uint32_t> keys_;
  bool any_replaces_ = false;
  bool any_unable_ = false;
};

/// The set in force, replaced as a whole.
///
/// Thread-safe. A reader compares version() with the one it holds, which costs no shared write.
class LivePolicies {
 public:
  explicit LivePolicies(std::shared_ptr<const PolicySet> first) : current_(std::move(first)) {}

  void Publish(std::shared_ptr<const PolicySet> next);
  std::shared_ptr<const PolicySet> Current() const;
  std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const PolicySet> current_;
  std::atomic<std::uint64_t> version_{1};
};

}  // namespace weir::policy
