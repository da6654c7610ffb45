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

/// The domain of policies and requests that name none.
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
  kAny,     ///< `"*"`: every value, each with a bucket of its own
  kPrefix,  ///< `/v1/*`: values that begin so; they share one bucket
  kExact,
};

struct EntryMatch {
  std::string name;
  MatchKind kind = MatchKind::kExact;
  std::string text;  ///< the value (kExact) or its beginning (kPrefix)
  /// In a chain, where every value has a bucket of its own: all values that match share one.
  bool shared = false;

  friend bool operator==(const EntryMatch&, const EntryMatch&) = default;
};

/// What happens to the other policies of a request when one of them refuses it.
enum class ChargeMode : std::uint8_t {
  kAllOrNone,  ///< nothing is charged
  kReports,    ///< the same, but what is reported afterwards (Request::reported) always counts
  kEach,       ///< each policy is decided and charged for itself
  kAlways,     ///< each policy is charged, also the one that refuses: as if it had `overdraw`
};

/// True if a request charges all policies or none.
constexpr bool ChargesTogether(ChargeMode mode) noexcept {
  return mode == ChargeMode::kAllOrNone || mode == ChargeMode::kReports;
}

/// A policy as it was written, validated on its own. PolicySet checks that it fits with the
/// others.
struct Definition {
  std::string domain{kDefaultDomain};
  std::string name;
  /// Applies to descriptors that have all these entries. None (but has_match): to every request.
  std::vector<EntryMatch> match;
  bool has_match = false;
  /// `match` was written as `chain`: the descriptor must have exactly these entries in this order,
  /// and of all chains only the most specific applies (policy/chain_tree.h).
  bool ordered = false;
  /// With `ordered`: what it matches has no limit, not even that of a more general chain.
  bool exempt = false;
  /// Policies of the domain that do not apply to a request to which this one does.
  std::vector<std::string> replaces;
  std::string key;             ///< if not empty: applies to requests with exactly this bare key
  std::optional<Quota> quota;  ///< nothing: unlimited
  OnStoreError on_store_error = OnStoreError::kLocal;
  Mode mode = Mode::kExact;
  /// The store that its limits are kept in, by its name in the configuration; empty: the usual one.
  std::string store = {};
  bool shadow = false;
  /// While an override has the say about `shadow`: what the file says.
  std::optional<bool> shadow_in_file = {};
  std::int64_t cost = 1;  ///< what a request of cost 1 charges
  /// Of the domain, as the policy's file says it.
  ChargeMode charge = ChargeMode::kAllOrNone;
  /// Every request counts, whether it fits or not, and is refused while the bucket is in debt.
  bool overdraw = false;
  /// Refuses everything that costs something. The quota only says what to show.
  bool blocked = false;
  /// One of several quotas, of which one suffices: by itself it never refuses, but Envoy's service
  /// refuses a request all of whose quotas are over, and its metadata names those. With shadow.
  bool quota_mode = false;
  /// A JSON object that the metadata of answers carries while the limit is not over; empty: none.
  std::string metadata = {};
  /// What the rate limit service calls the limit in its answers; empty: nothing.
  std::string limit_name = {};
  std::string source;  ///< where it stands, for messages: "policies.yaml:7:3" or "admin API"

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

/// A file's policy as the file has it, whatever an override says.
Definition AsInFile(Definition definition);

inline constexpr std::int64_t kMaxPolicyCost = 1'000'000;
inline constexpr std::size_t kMaxNameBytes = 256;  ///< of a domain, policy, entry name or bare key
inline constexpr std::size_t kMaxMatchBytes = 1024;     ///< of a value or prefix in a match
inline constexpr std::size_t kMaxMetadataBytes = 4096;  ///< as JSON
inline constexpr std::size_t kMaxMatchEntries = 16;     ///< of one policy
inline constexpr std::size_t kMaxPolicies = 100'000;

/// Splits a match value: `*`, `prefix*`, `=text` (exactly the text, whatever it looks like) or the
/// value itself. What it does not know is the value itself: for what was checked when it was
/// written.
EntryMatch MakeEntryMatch(std::string name, std::string_view value);
/// The same for what a person wrote. kInvalidArgument for a value that looks like a pattern of
/// another program (`*-bot`, `~^v[0-9]+$`): taken as a text, it would match
/// nobody.
Result<EntryMatch> ReadEntryMatch(std::string name, std::string_view value);
/// kInvalidArgument for a bare key that looks like a pattern: bare keys are compared exactly.
Status CheckBareKey(std::string_view key);
/// The other way round.
std::string MatchText(const EntryMatch& entry);
/// The same without the `=`, as names and keys have it.
std::string PlainMatchText(const EntryMatch& entry);

/// all_or_none, reports, each or always.
std::optional<ChargeMode> ParseChargeMode(std::string_view text) noexcept;
std::string_view ChargeModeName(ChargeMode value) noexcept;

std::optional<OnStoreError> ParseOnStoreError(std::string_view text) noexcept;
std::string_view OnStoreErrorName(OnStoreError value) noexcept;

/// How a policy charges, as fields of a JSON object that is begun:
/// ,"mode":"leased","overdraw":true, "charge":"each". What is as usual is left out.
void AppendCharging(JsonWriter& json, Mode mode, bool overdraw, ChargeMode charge);

std::optional<Mode> ParseMode(std::string_view text) noexcept;
std::string_view ModeName(Mode value) noexcept;

}  // namespace weir::policy
