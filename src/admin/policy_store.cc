#include "admin/policy_store.h"

#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "algorithm/algorithms.h"
#include "base/instant.h"
#include "base/json_writer.h"
#include "policy/charging.h"

namespace weir::policy {
namespace {

constexpr std::string_view kOverrideName = "OVERRIDE";

Error Bad(std::string_view field, std::string_view expected) {
  return Error{Code::kInvalidArgument, std::string(field) + ": " + std::string(expected)};
}

std::optional<Error> CheckRange(std::string_view field, std::int64_t value, std::int64_t most) {
  if (value >= 1 && value <= most) return std::nullopt;
  return Bad(field, "expected a whole number from 1 to " + std::to_string(most) + ", got " +
                        std::to_string(value));
}

std::optional<Error> CheckText(std::string_view field, std::string_view text, std::size_t most) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  bool clean = true;
  for (const char c : text) clean = clean && !control(c);
  if (!text.empty() && text.size() <= most && clean) return std::nullopt;
  return Bad(field, "expected 1 to " + std::to_string(most) + " bytes without control characters");
}

Result<Quota> MakeQuota(const StoredPolicy& policy) {
  if (policy.type.is_override()) return Bad("type", "an OVERRIDE has no limit");
  return algorithm::Of(policy.type.algorithm())
      .make({.limit = policy.capacity,
             .refill = policy.refill_rate,
             .window = std::chrono::seconds(policy.window_seconds),
             .buckets = policy.buckets});
}

std::optional<Error> CheckMatch(const StoredPolicy& policy) {
  if (policy.match.size() > kMaxMatchEntries) {
    return Bad("match", "more than " + std::to_string(kMaxMatchEntries) + " entries");
  }
  for (std::size_t i = 0; i < policy.match.size(); ++i) {
    const EntryMatch& entry = policy.match[i];
    if (auto bad = CheckText("match", entry.name, kMaxNameBytes)) return bad;
    if (entry.text.size() > kMaxMatchBytes) {
      return Bad("match." + entry.name, "longer than " + std::to_string(kMaxMatchBytes) + " bytes");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (policy.match[j].name == entry.name) return Bad("match." + entry.name, "is given twice");
    }
  }
  return std::nullopt;
}

/// The fields of all types except overrides.
void AppendLimit(JsonWriter& json, const StoredPolicy& policy) {
  json.Field("capacity", policy.capacity).Field("refillRate", policy.refill_rate);
  json.Field("windowSeconds", policy.window_seconds);
  if (algorithm::Of(policy.type.algorithm()).has_buckets) json.Field("buckets", policy.buckets);
  if (policy.has_match) {
    json.Field("domain", policy.domain).Key("match").BeginObject();
    for (const EntryMatch& match : policy.match) json.AnyKey(match.name).Value(MatchText(match));
    json.EndObject();
  }
  json.Field("shadow", policy.shadow).Field("unlimited", policy.unlimited);
  json.Field("onStoreError", OnStoreErrorName(policy.on_store_error));
  AppendCharging(json, policy.mode, policy.overdraw, policy.charge);
  if (!policy.store.empty()) json.Field("store", policy.store);
  json.Field("cost", policy.cost);
}

}  // namespace

std::string_view PolicyTypeName(PolicyType type) noexcept {
  return type.is_override() ? kOverrideName : algorithm::Of(type.algorithm()).type;
}

std::optional<PolicyType> ParsePolicyType(std::string_view name) noexcept {
  if (name == kOverrideName) return PolicyType::kOverride;
  const algorithm::Descriptor* found = algorithm::FindNamed(name);
  if (found == nullptr) return std::nullopt;
  return found->algorithm;
}

Result<Definition> ToDefinition(const StoredPolicy& policy) {
  constexpr std::int64_t kMaxSeconds =
      std::chrono::duration_cast<std::chrono::seconds>(kMaxWindow).count();
  if (auto bad = CheckText("key", policy.key, kMaxNameBytes)) return *bad;
  if (auto bad = CheckText("domain", policy.domain, kMaxNameBytes)) return *bad;
  if (auto bad = CheckRange("capacity", policy.capacity, kMaxLimit)) return *bad;
  // Numbers that the algorithm does not use may be 0: clients send every field.
  const algorithm::Descriptor* kind =
      policy.type.is_override() ? nullptr : &algorithm::Of(policy.type.algorithm());
  const auto check = [](std::string_view field, std::int64_t value, std::int64_t most, bool used) {
    return !used && value == 0 ? std::nullopt : CheckRange(field, value, most);
  };
  const bool refills = kind == nullptr || kind->refills();
  const bool buckets = kind == nullptr || kind->has_buckets;
  if (auto bad = check("refillRate", policy.refill_rate, kMaxLimit, refills)) return *bad;
  if (auto bad = check("windowSeconds", policy.window_seconds, kMaxSeconds, !refills)) return *bad;
  if (auto bad = check("buckets", policy.buckets, kMaxBuckets, buckets)) return *bad;
  if (auto bad = CheckRange("cost", policy.cost, kMaxPolicyCost)) return *bad;
  if (auto bad = CheckMatch(policy)) return *bad;
  if (policy.store.find_first_of(" \t\n") != std::string::npos ||
      policy.store.size() > kMaxNameBytes) {
    return Bad("store", "must be the name of a store");
  }
  Definition definition;
  if (!policy.unlimited) {
    Result<Quota> quota = MakeQuota(policy);
    // Each number is in range, so the only problem left is their combination.
    if (!quota.ok()) {
      return Bad(refills ? "refillRate" : "capacity", quota.error().message);
    }
    definition.quota = *quota;
  }
  definition.domain = policy.domain;
  definition.name = policy.key;
  definition.has_match = policy.has_match;
  definition.match = policy.match;
  if (!policy.has_match) definition.key = policy.key;
  definition.on_store_error = policy.on_store_error;
  definition.mode = policy.mode;
  definition.store = policy.store;
  definition.overdraw = policy.overdraw;
  definition.charge = policy.charge;
  if (const Status charges = CheckCharging(definition); !charges.ok()) return charges.error();
  definition.shadow = policy.shadow;
  definition.cost = policy.cost;
  definition.source = "admin API";
  return definition;
}

Result<ShadowOverride> ToOverride(const StoredPolicy& policy) {
  if (auto bad = CheckText("key", policy.key, kMaxNameBytes)) return *bad;
  if (auto bad = CheckText("domain", policy.domain, kMaxNameBytes)) return *bad;
  const std::string prefix = policy.domain + "/";
  if (!policy.key.starts_with(prefix) || policy.key.size() == prefix.size()) {
    return Bad("key", "of an override must be " + prefix + " and the name of a policy in a file");
  }
  // Numbers that would have no effect are not accepted silently.
  StoredPolicy nothing_more;
  nothing_more.id = policy.id;
  nothing_more.key = policy.key;
  nothing_more.type = policy.type;
  nothing_more.domain = policy.domain;
  nothing_more.shadow = policy.shadow;
  nothing_more.version = policy.version;
  nothing_more.created_at = policy.created_at;
  nothing_more.updated_at = policy.updated_at;
  nothing_more.expires_at = policy.expires_at;
  if (policy != nothing_more) {
    return Bad("type", "an OVERRIDE can set only shadow; change the rest in the policy file");
  }
  return ShadowOverride{policy.domain, policy.key.substr(prefix.size()), policy.shadow};
}

std::string OverrideKey(const Definition& definition) {
  return definition.domain + "/" + definition.name;
}

void AppendPolicy(JsonWriter& json, const StoredPolicy& policy) {
  json.Field("id", policy.id).Field("policyKey", policy.key);
  json.Field("type", PolicyTypeName(policy.type));
  if (policy.type.is_override()) {
    json.Field("domain", policy.domain).Field("shadow", policy.shadow);
  } else {
    AppendLimit(json, policy);
  }
  if (policy.expires_at != 0) json.Field("expiresAt", FormatInstant(policy.expires_at));
  json.Field("version", policy.version);
}

std::string ToJson(const StoredPolicy& policy) {
  return JsonObject([&](JsonWriter& json) { AppendPolicy(json, policy); });
}

namespace {
constexpr std::string_view kStoreWord = "store=";
}  // namespace

std::string BehaviourWords(const StoredPolicy& policy) {
  std::string words(OnStoreErrorName(policy.on_store_error));
  if (policy.mode != Mode::kExact) words.append(" ").append(ModeName(policy.mode));
  if (policy.overdraw) words += " overdraw";
  if (policy.charge != ChargeMode::kAllOrNone) {
    words.append(" ").append(ChargeModeName(policy.charge));
  }
  if (!policy.store.empty()) words.append(" ").append(kStoreWord).append(policy.store);
  return words;
}

bool ReadBehaviour(std::string_view words, StoredPolicy& policy) {
  const std::size_t first = std::min(words.find(' '), words.size());
  const std::optional<OnStoreError> rule = ParseOnStoreError(words.substr(0, first));
  if (!rule) return false;
  policy.on_store_error = *rule;
  words.remove_prefix(first);
  while (!words.empty()) {
    words.remove_prefix(1);
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    if (const std::optional<Mode> mode = ParseMode(word)) {
      policy.mode = *mode;
    } else if (const std::optional<ChargeMode> charge = ParseChargeMode(word)) {
      policy.charge = *charge;
    } else if (word == "overdraw") {
      policy.overdraw = true;
    } else if (word.starts_with(kStoreWord) && word.size() > kStoreWord.size()) {
      policy.store = word.substr(kStoreWord.size());
    } else {
      return false;
    }
    words.remove_prefix(end);
  }
  return true;
}

std::int64_t VersionIn(std::string_view json) {
  thread_local simdjson::dom::parser parser;
  std::int64_t version = 0;
  if (parser.parse(json.data(), json.size())["version"].get(version) != simdjson::SUCCESS) return 0;
  return version;
}

std::int64_t VersionAfter(const PolicyChange& latest) {
  return VersionIn(latest.after.empty() ? latest.before : latest.after) + 1;
}

Error NoSuchPolicy(std::string_view key) {
  return Error{Code::kNotFound, "no policy with key '" + std::string(key) + "'"};
}

void PolicyStore::Create(StoredPolicy policy, std::string who, Done done) {
  std::string key = policy.key;
  Change({.key = std::move(key),
          .wanted = std::move(policy),
          .who = std::move(who),
          .action = "policy.create",
          .must = PolicyEdit::Must::kBeNew},
         std::move(done));
}

void PolicyStore::Update(StoredPolicy policy, std::string who, Done done) {
  std::string key = policy.key;
  Change({.key = std::move(key),
          .wanted = std::move(policy),
          .who = std::move(who),
          .action = "policy.update",
          .must = PolicyEdit::Must::kExist},
         std::move(done));
}

void PolicyStore::Delete(std::string key, std::string who, Done done) {
  Change({.key = std::move(key), .who = std::move(who), .action = "policy.delete"},
         std::move(done));
}

}  // namespace weir::policy
