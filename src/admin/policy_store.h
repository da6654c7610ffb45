#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/audit_log.h"
#include "base/json_writer.h"
#include "policy/definition.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::policy {

/// The type of a policy on the admin API: an algorithm, or OVERRIDE, which has no limit of its own
/// but decides the shadow mode of a file's policy. A value.
class PolicyType {
 public:
  static const PolicyType kOverride;

  // NOLINTNEXTLINE(google-explicit-constructor): an algorithm is a type.
  constexpr PolicyType(Algorithm algorithm) noexcept : algorithm_(algorithm) {}

  bool is_override() const noexcept { return !algorithm_; }
  /// Requires !is_override().
  Algorithm algorithm() const noexcept { return *algorithm_; }

  friend bool operator==(PolicyType, PolicyType) = default;

 private:
  constexpr PolicyType() noexcept = default;

  std::optional<Algorithm> algorithm_;
};
inline constexpr PolicyType PolicyType::kOverride{};

/// As on the wire: "SLIDING_WINDOW".
std::string_view PolicyTypeName(PolicyType type) noexcept;
/// Also accepts the name used in policy files: "sliding_log".
std::optional<PolicyType> ParsePolicyType(std::string_view name) noexcept;

/// A policy as the admin API stores it. Without `match` it is for requests with the bare key `key`;
/// with it, for descriptors, and `key` is its name. One of type kOverride is for the policy of a
/// file that `key` names as domain/name; only its domain, shadow and end are used.
struct StoredPolicy {
  std::int64_t id = 0;
  std::string key = {};  ///< policyKey: unique
  PolicyType type = Algorithm::kTokenBucket;
  std::int64_t capacity = 100;
  std::int64_t refill_rate = 10;     ///< permits per second (TOKEN_BUCKET)
  std::int64_t window_seconds = 60;  ///< (the others; the lease of CONCURRENCY)
  std::int64_t buckets = 10;         ///< (SLIDING_COUNTER)
  std::string domain{kDefaultDomain};
  bool has_match = false;
  std::vector<EntryMatch> match = {};
  bool shadow = false;
  bool unlimited = false;
  OnStoreError on_store_error = OnStoreError::kLocal;
  Mode mode = Mode::kExact;
  std::string store = {};  ///< by its name in the configuration; empty: the default one
  bool overdraw = false;
  ChargeMode charge = ChargeMode::kAllOrNone;
  std::int64_t cost = 1;
  /// 1 when first created, incremented by each update and by creating it again after a deletion.
  std::int64_t version = 0;
  Nanos created_at = 0;
  Nanos updated_at = 0;
  /// When it ends by itself (its previous version is restored, or it is deleted if new); 0: never.
  Nanos expires_at = 0;

  friend bool operator==(const StoredPolicy&, const StoredPolicy&) = default;
};

/// Checks it and converts it to a definition. kInvalidArgument uses the field's name on the
/// wire.
Result<Definition> ToDefinition(const StoredPolicy& policy);
/// The same for one of type kOverride.
Result<ShadowOverride> ToOverride(const StoredPolicy& policy);
/// The key of an override of this file policy: "domain/name".
std::string OverrideKey(const Definition& definition);

/// {"id":1,"policyKey":"user-123","type":"TOKEN_BUCKET","capacity":100,"refillRate":10,"windowSeconds":60,…}
std::string ToJson(const StoredPolicy& policy);
/// Appends the same fields to an object that may have others.
void AppendPolicy(JsonWriter& json, const StoredPolicy& policy);

/// How databases store onStoreError, mode, overdraw, charge and store, as words: "local", "deny
/// leased overdraw each store=hot". Defaults are omitted, except for the first word. A node that
/// does not know a word rejects the policy instead of charging it differently from other nodes.
std::string BehaviourWords(const StoredPolicy& policy);
/// False if a word is unknown.
bool ReadBehaviour(std::string_view words, StoredPolicy& policy);

/// One change, for the history.
struct PolicyChange {
  std::int64_t id = 0;
  std::string key = {};
  Nanos at = 0;
  std::string who = {};
  std::string action = {};  ///< as in the audit log: create, update, delete, rollback, undo, expire
  std::string before = {};  ///< JSON, or empty
  std::string after = {};
};

/// The version in a policy's JSON as ToJson writes it; 0 if there is none.
std::int64_t VersionIn(std::string_view json);

/// The version that a policy gets when it is created and `latest` is the last change of its key:
/// numbering continues after a deletion, so that no two states have the same number.
std::int64_t VersionAfter(const PolicyChange& latest);

/// One requested change of one policy.
struct PolicyEdit {
  enum class Must : std::uint8_t { kAny, kBeNew, kExist };

  std::string key = {};
  std::optional<StoredPolicy> wanted = {};  ///< its key is `key`; nullopt: delete
  std::string who = {};
  std::string action = {};  ///< for the audit log: "policy.update", "policy.undo", …
  Must must = Must::kAny;
  std::int64_t version = 0;  ///< not 0: only if this is the version in force
  std::int64_t undoes = 0;   ///< not 0: undoes this entry, if `latest` is the policy's latest
  std::int64_t latest = 0;
};

/// The health of the policy store, if it is not in this process.
struct PolicyHealth {
  bool up = true;           ///< its last call was answered
  bool known = true;        ///< false: never read, nor loaded from what this node saved
  std::int64_t change = 0;  ///< the number of the latest change in force here
  std::string last_error = {};
};

/// The maximum size of a page of a list.
inline constexpr std::size_t kMaxPage = 1000;

/// How many versions of a policy are kept: the latest ones.
inline constexpr std::size_t kMaxVersions = kMaxPage;

/// kNotFound with a message.
Error NoSuchPolicy(std::string_view key);

/// The policies of the admin API, and its audit log. When a change is reported as done, it is on
/// disk, in the log and in force on this node.
///
/// Thread-safe. Callbacks run on a thread of the store, or before the call returns.
class PolicyStore : public AuditLog {
 public:
  /// The policy now in force, or the deleted one.
  using Done = std::function<void(Result<StoredPolicy>)>;
  using HistoryDone = std::function<void(Result<std::vector<PolicyChange>>)>;

  struct Page {
    std::vector<StoredPolicy> policies;  ///< in the order of their keys
    std::size_t total = 0;
    std::string next;  ///< `after` for the next page; empty: there is none
  };

  /// Changes of one policy follow each other, wherever they are made: each sees the result of the
  /// one before it and gets a version of its own. Errors: kInvalidArgument, kNotFound,
  /// kAlreadyExists (also if a policy file has it), kFailedPrecondition (it was changed meanwhile),
  /// kResourceExhausted, kUnavailable (nothing was changed), kDeadlineExceeded (it is unknown
  /// whether the change was made).
  virtual void Change(PolicyEdit edit, Done done) = 0;

  void Create(StoredPolicy policy, std::string who, Done done);
  /// Replaces everything except the ID and the key.
  void Update(StoredPolicy policy, std::string who, Done done);
  void Delete(std::string key, std::string who, Done done);

  /// Reads from memory.
  virtual Result<StoredPolicy> Get(std::string_view key) const = 0;
  /// Up to `limit` policies whose keys come after `after`. Reads from memory.
  virtual Page List(std::string_view after, std::size_t limit) const = 0;
  /// Latest changes first; `key` empty: of all policies.
  virtual void History(std::string key, std::size_t limit, HistoryDone done) = 0;

  /// For an expired policy whose end cannot be stored now: puts `before` in force instead on this
  /// node (nullopt: no policy), until another version of it is stored. Does nothing if one is.
  virtual Status EndHere(const StoredPolicy& expired, std::optional<StoredPolicy> before) = 0;

  virtual PolicyHealth health() const { return {}; }

  /// Answers all pending calls; no callback runs afterwards.
  virtual void Close() {}
};

}  // namespace weir::policy
