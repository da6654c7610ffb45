#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "weir/quota.h"
#include "weir/result.h"

namespace weir::policy {

/// The domain of policies and requests that do not name one.
inline constexpr std::string_view kDefaultDomain = "default";

/// What a policy does while the store cannot answer.
enum class OnStoreError : std::uint8_t {
  kAllow,  ///< let everything pass
  kDeny,   ///< refuse everything
  kLocal,  ///< grant this process's share of the quota from memory
};

/// How a policy's state in a shared store is charged.
enum class Mode : std::uint8_t {
  kExact,       ///< every check asks the store
  kLeased,      ///< permits are taken from it in advance (docs/design/leases.md)
  kRateLeased,  ///< shares of a bucket's rate are reserved there, and permits as with kLeased
};

/// How one entry of a descriptor is compared.
enum class MatchKind : std::uint8_t {
  kAny,     ///< `"*"`: every value, each with its own bucket
  kPrefix,  ///< `/v1/*`: values that begin with it; they share one bucket
  kExact,
};

struct EntryMatch {
  std::string name;
  MatchKind kind = MatchKind::kExact;
  std::string text;  ///< the value (kExact) or its beginning (kPrefix)
  /// In a chain, where every value has its own bucket: all values that match share one.
  bool shared = false;

  friend bool operator==(const EntryMatch&, const EntryMatch&) = default;
};

/// What happens to the other policies of a request when one of them refuses it.
enum class ChargeMode : std::uint8_t {
  kAllOrNone,  ///< nothing is charged
  kReports,    ///< the same, but usage reported afterwards (Request::reported) always counts
  kEach,       ///< each policy is decided and charged separately
  kAlways,     ///< each policy is charged, even the one that refuses: as if it had `overdraw`
};

/// True if a request charges all policies or none.
constexpr bool ChargesTogether(ChargeMode mode) noexcept {
  return mode == ChargeMode::kAllOrNone || mode == ChargeMode::kReports;
}

/// A policy as it was written, validated on its own. PolicySet checks that it is consistent with
/// the others.
struct Definition {
  std::string domain{kDefaultDomain};
  std::string name;
  /// Applies to descriptors that have all these entries. Empty with has_match: to every request.
  std::vector<EntryMatch> match;
  bool has_match = false;
  /// `match` was written as `chain`: the descriptor must have exactly these entries in this order,
  /// and of all chains only the most specific applies (policy/chain_tree.h).
  bool ordered = false;
  /// With `ordered`: requests that match it have no limit, not even that of a more general chain.
  bool exempt = false;
  /// Policies of the domain that do not apply to a request that this one applies to.
  std::vector<std::string> replaces;
  std::string key;             ///< if not empty: applies to requests with exactly this bare key
  std::optional<Quota> quota;  ///< nullopt: unlimited
  OnStoreError on_store_error = OnStoreError::kLocal;
  Mode mode = Mode::kExact;
  /// The name of the configured store that keeps its limits; empty: the default one.
  std::string store = {};
  bool shadow = false;
  /// While an override sets `shadow`: the value in the file.
  std::optional<bool> shadow_in_file = {};
  std::int64_t cost = 1;  ///< what a request of cost 1 charges
  /// The domain's, as the policy's file sets it.
  ChargeMode charge = ChargeMode::kAllOrNone;
  /// Every request counts, whether it fits or not, and is refused while the bucket is in debt.
  bool overdraw = false;
  /// Refuses every request with a cost. The quota only determines what is shown.
  bool blocked = false;
  /// One of several quotas, of which one suffices: by itself it never refuses, but Envoy's service
  /// refuses a request if all its quotas are exceeded, and its metadata names them. With shadow.
  bool quota_mode = false;
  /// A JSON object for the metadata of answers while the limit is not exceeded; empty: none.
  std::string metadata = {};
  /// The limit's name in answers of the rate limit service; empty: none.
  std::string limit_name = {};
  std::string source;  ///< where it is defined, for messages: "policies.yaml:7:3" or "admin API"

  /// True if a charge counts whether it fits or not.
  bool always_counts() const noexcept {
    return can_overdraw() && (overdraw || charge == ChargeMode::kAlways);
  }
  /// The same for a charge that is reported afterwards.
  bool report_counts() const noexcept {
    return can_overdraw() && (always_counts() || charge == ChargeMode::kReports);
  }
  bool can_overdraw() const noexcept {
    return quota && quota->algorithm() != Algorithm::kConcurrency;
  }

  friend bool operator==(const Definition&, const Definition&) = default;
};

/// Overrides `shadow` of the policy with this domain and name in a file.
struct ShadowOverride {
  std::string domain{kDefaultDomain};
  std::string name;
  bool shadow = false;
};

/// A file's policy as the file has it, without an override.
Definition AsInFile(Definition definition);

inline constexpr std::int64_t kMaxPolicyCost = 1'000'000;
inline constexpr std::size_t kMaxNameBytes = 256;  ///< of a domain, policy, entry name or bare key
inline constexpr std::size_t kMaxMatchBytes = 1024;     ///< of a value or prefix in a match
inline constexpr std::size_t kMaxMetadataBytes = 4096;  ///< as JSON
inline constexpr std::size_t kMaxMatchEntries = 16;     ///< of one policy
inline constexpr std::size_t kMaxPolicies = 100'000;

/// Splits a match value: `*`, `prefix*`, `=text` (exactly that text, even if it looks like a
/// pattern) or the value itself. Anything else is taken literally: for values that were checked
/// when they were written.
EntryMatch MakeEntryMatch(std::string name, std::string_view value);
/// As above, for what a person wrote. kInvalidArgument for a value that looks like a
/// pattern of another program (`*-bot`, `~^v[0-9]+$`): taken literally, it would match no
/// request.
Result<EntryMatch> ReadEntryMatch(std::string name, std::string_view value);
/// kInvalidArgument for a bare key that looks like a pattern: bare keys are compared exactly.
Status CheckBareKey(std::string_view key);
/// The inverse of MakeEntryMatch.
std::string MatchText(const EntryMatch& entry);
/// As MatchText, but without the `=`, as used in names and keys.
std::string PlainMatchText(const EntryMatch& entry);

/// all_or_none, reports, each or always.
std::optional<ChargeMode> ParseChargeMode(std::string_view text) noexcept;
std::string_view ChargeModeName(ChargeMode value) noexcept;

std::optional<OnStoreError> ParseOnStoreError(std::string_view text) noexcept;
std::string_view OnStoreErrorName(OnStoreError value) noexcept;

/// How a policy charges, as fields of a JSON object that has been opened:
/// ,"mode":"leased","overdraw":true, "charge":"each". Default values are left out.
void AppendCharging(JsonWriter& json, Mode mode, bool overdraw, ChargeMode charge);

std::optional<Mode> ParseMode(std::string_view text) noexcept;
std::string_view ModeName(Mode value) noexcept;

}  // namespace weir::policy
