#include "admin/policy_body.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admin/policy_warnings.h"
#include "algorithm/algorithms.h"
#include "base/ascii.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/instant.h"
#include "base/json_text.h"
#include "base/nearest.h"
#include "protocol/http/check_json.h"
#include "protocol/http/check_reader.h"

namespace weir::http {
namespace {

namespace json = simdjson::ondemand;

constexpr std::array<std::string_view, 3> kOnStoreErrors{"allow", "deny", "local"};
constexpr std::array<std::string_view, 3> kModes{"exact", "leased", "rate_leased"};
constexpr std::array<std::string_view, 4> kChargeModes{"all_or_none", "reports", "each", "always"};

constexpr std::array<std::string_view, 17> kFields{
    "key",    "type",     "capacity", "refillRate", "windowSeconds", "buckets",
    "domain", "match",    "shadow",   "unlimited",  "onStoreError",  "mode",
    "store",  "overdraw", "charge",   "cost",       "expiresAt"};

/// The names of the API, not those of policy files, which are accepted as well.
std::vector<std::string_view> Types() {
  std::vector<std::string_view> types;
  for (const algorithm::Descriptor& each : algorithm::kAlgorithms) types.push_back(each.type);
  types.emplace_back("OVERRIDE");
  return types;
}

Error Bad(std::string_view field, std::string_view what) {
  return Error{Code::kInvalidArgument, std::string(field).append(": ").append(what)};
}

/// The error for a value that could not be read as it should be. The parser looks at a value only
/// now: one that is not JSON at all, such as "\q", is not one of the wrong type.
Error Wrong(simdjson::error_code error, std::string_view field, std::string_view what) {
  return IsSyntaxError(error) ? BadJson() : Bad(field, what);
}

Status ReadText(json::value value, std::string_view field, std::string& text) {
  std::string_view found;
  if (const auto error = value.get_string().get(found)) {
    return Wrong(error, field, "must be a string, not " + Shown(value));
  }
  text = found;
  return {};
}

Status ReadInteger(json::value value, std::string_view field, std::int64_t& number) {
  if (const auto error = value.get_int64().get(number)) {
    return Wrong(error, field, "must be an integer, not " + Shown(value));
  }
  return {};
}

Status ReadRefill(json::value value, std::string_view field, std::int64_t& number) {
  const auto error = value.get_int64().get(number);
  if (!error) return {};
  return Wrong(error, field,
               "must be an integer, the permits a second, not " + Shown(value) +
                   "; for a fraction use a policy file (refill_per_second: 0.5)");
}

/// "must be allow, deny or local, not \"lcal\"; did you mean local?"
std::string WrongName(std::string_view name, std::span<const std::string_view> names) {
  std::string text = "must be ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : " or ";
    text += names[i];
  }
  text += ", not ";
  AppendJsonString(text, name.substr(0, kMaxNameBytes));
  std::string upper(name.substr(0, kMaxNameBytes));
  for (char& c : upper) c = Upper(c);
  auto nearest = Nearest(name, names);
  if (!nearest) nearest = Nearest(upper, names);
  if (nearest) {
    text.append("; did you mean ").append(*nearest).append("?");
  }
  return text;
}

Status ReadFlag(json::value value, std::string_view field, bool& flag) {
  if (const auto error = value.get_bool().get(flag)) {
    return Wrong(error, field, "must be true or false, not " + Shown(value));
  }
  return {};
}

/// Reads one of the names that `parse` knows.
template <typename Parse, typename Named>
Status ReadNamed(json::value value, std::string_view field, Parse parse,
                 std::span<const std::string_view> names, Named& named) {
  std::string name;
  if (Status status = ReadText(value, field, name); !status.ok()) return status;
  const auto found = parse(name);
  if (!found) return Bad(field, WrongName(name, names));
  named = *found;
  return {};
}

Status ReadExpiry(json::value value, Nanos& expiry) {
  expiry = 0;
  bool is_null = false;
  if (value.is_null().get(is_null) != simdjson::SUCCESS) return BadJson();
  if (is_null) return {};
  std::string text;
  if (Status status = ReadText(value, "expiresAt", text); !status.ok()) return status;
  const Result<Nanos> instant = ReadEndTime(text);
  if (!instant.ok()) return instant.error();
  expiry = *instant;
  return {};
}

Status ReadMatch(json::value value, policy::StoredPolicy& policy) {
  json::object object;
  if (const auto error = value.get_object().get(object)) {
    return Wrong(error, "match", "must be an object of names and values");
  }
  policy.has_match = true;
  policy.match.clear();
  return ReadFields(object, [&policy](std::string_view name, json::value found) -> Status {
    if (policy.match.size() == policy::kMaxMatchEntries)
      return Bad("match", "has too many entries");
    std::string entry(name);
    std::string text;
    if (Status status = ReadText(found, "match." + entry, text); !status.ok()) return status;
    Result<policy::EntryMatch> match = policy::ReadEntryMatch(entry, text);
    if (!match.ok()) return Bad("match." + entry, match.error().message);
    policy.match.push_back(std::move(*match));
    return {};
  });
}

/// Reads seconds, or text with a unit: "90s", "1m", "PT1M".
Status ReadWindow(json::value value, std::string_view field, std::int64_t& seconds) {
  if (value.get_int64().get(seconds) == simdjson::SUCCESS) return {};
  std::string_view text;
  if (const auto error = value.get_string().get(text)) {
    return Wrong(error, field, "must be an integer, or a string with a unit such as \"1m\"");
  }
  const auto span = ParseDuration(text);
  if (!span.ok()) return Bad(field, span.error().message);
  if (*span % std::chrono::seconds(1) != std::chrono::nanoseconds(0)) {
    return Bad(field, "must be whole seconds; only policy files allow fractions");
  }
  seconds = *span / std::chrono::seconds(1);
  return {};
}

/// A field's name in policy files, and its name here.
struct Alias {
  std::string_view given;
  std::string_view field;
};
constexpr std::array<Alias, 9> kAliases = {{{"policyKey", "key"},
                                            {"name", "key"},
                                            {"limit", "capacity"},
                                            {"window", "windowSeconds"},
                                            {"lease", "windowSeconds"},
                                            {"refillPerSecond", "refillRate"},
                                            {"refill_per_second", "refillRate"},
                                            {"on_store_error", "onStoreError"},
                                            {"expires_at", "expiresAt"}}};

std::string_view FieldOf(std::string_view given) {
  const auto found = std::find_if(kAliases.begin(), kAliases.end(),
                                  [given](const Alias& alias) { return alias.given == given; });
  return found == kAliases.end() ? given : found->field;
}

/// A field has two names, whose values could differ.
Status Note(GivenFields& given, std::string_view name) {
  const auto [at, is_new] = given.try_emplace(std::string(FieldOf(name)), name);
  if (is_new) return {};
  return Bad(name, at->second == name ? "is given twice" : "was already given as " + at->second);
}

/// Reads { "sliding_log": { "limit": 5, "window": "1m" } }, as in policy files.
Status ReadQuota(json::value value, policy::StoredPolicy& policy, GivenFields& given);

Status ReadField(std::string_view name, json::value value, policy::StoredPolicy& policy,
                 GivenFields& given) {
  if (Status once = Note(given, name); !once.ok()) return once;
  const std::string_view field = FieldOf(name);
  if (field == "key") return ReadText(value, name, policy.key);
  if (field == "type") {
    return ReadNamed(value, field, policy::ParsePolicyType, Types(), policy.type);
  }
  if (field == "quota") return ReadQuota(value, policy, given);
  if (field == "capacity") return ReadInteger(value, name, policy.capacity);
  if (field == "refillRate") return ReadRefill(value, name, policy.refill_rate);
  if (field == "windowSeconds") return ReadWindow(value, name, policy.window_seconds);
  if (field == "buckets") return ReadInteger(value, name, policy.buckets);
  if (field == "domain") return ReadText(value, name, policy.domain);
  if (field == "match") return ReadMatch(value, policy);
  if (field == "shadow") return ReadFlag(value, name, policy.shadow);
  if (field == "unlimited") return ReadFlag(value, name, policy.unlimited);
  if (field == "onStoreError") {
    return ReadNamed(value, field, policy::ParseOnStoreError, kOnStoreErrors,
                     policy.on_store_error);
  }
  if (field == "mode") {
    return ReadNamed(value, field, policy::ParseMode, kModes, policy.mode);
  }
  if (field == "overdraw") return ReadFlag(value, name, policy.overdraw);
  if (field == "store") return ReadText(value, name, policy.store);
  if (field == "charge") {
    return ReadNamed(value, field, policy::ParseChargeMode, kChargeModes, policy.charge);
  }
  if (field == "cost") return ReadInteger(value, name, policy.cost);
  if (field == "expiresAt") return ReadExpiry(value, policy.expires_at);
  // A response of the service may be sent back unchanged.
  if (name == "warnings") return {};
  std::int64_t ignored = 0;
  if (name == "id" || name == "version") return ReadInteger(value, name, ignored);
  std::string text;
  if (name == "createdAt" || name == "updatedAt" || name == "source") {
    return ReadText(value, name, text);
  }
  return Bad(name.substr(0, kMaxNameBytes),
             NotAField(name, "a policy", kFields) + ", or quota as in policy files");
}

Status ReadQuota(json::value value, policy::StoredPolicy& policy, GivenFields& given) {
  json::object kinds;
  if (const auto error = value.get_object().get(kinds)) {
    return Wrong(error, "quota",
                 R"(must be an object such as {"sliding_log":{"limit":5,"window":"1m"}})");
  }
  return ReadFields(kinds, [&](std::string_view name, json::value kind) -> Status {
    const algorithm::Descriptor* found = algorithm::FindNamed(name);
    if (found == nullptr) {
      return Bad("quota", "must have one of " + algorithm::Listed(&algorithm::Descriptor::name));
    }
    if (Status once = Note(given, "type"); !once.ok()) return once;
    policy.type = found->algorithm;
    json::object numbers;
    if (const auto error = kind.get_object().get(numbers)) {
      return Wrong(error, found->name, "must be an object");
    }
    Status read =
        ReadFields(numbers, [&](std::string_view number, json::value given_number) -> Status {
          const std::string copy(number);
          const bool known = FieldOf(copy) == "capacity" || copy == found->span_name ||
                             (FieldOf(copy) == "refillRate" && found->refills()) ||
                             (copy == "buckets" && found->has_buckets);
          if (!known)
            return Bad(copy.substr(0, kMaxNameBytes),
                       "is not a field of " + std::string(found->name));
          return ReadField(copy, given_number, policy, given);
        });
    if (!read.ok()) return read;
    // Required, as in policy files.
    const std::string span(found->refills() ? "refill_per_second" : found->span_name);
    for (const std::string& needed : {std::string(found->limit_name), span}) {
      if (!given.contains(FieldOf(needed))) return Bad(found->name, "requires " + needed);
    }
    return {};
  });
}

}  // namespace

Result<Nanos> ReadEndTime(std::string_view text) {
  const auto instant = ParseInstant(text);
  if (!instant) return Bad("expiresAt", "must be a time like 2030-01-31T12:00:00Z, or null");
  if (*instant != 0) return *instant;
  return Bad("expiresAt", FormatInstant(0) + " is in the past; give a later time, or null");
}

Result<policy::StoredPolicy> ReadPolicy(std::string_view body) {
  Result<PolicyBody> read = ReadPolicyBody(body);
  if (!read.ok()) return read.error();
  return std::move(read->policy);
}

namespace {

Result<PolicyBody> ReadBody(std::string_view body) {
  json::parser parser;
  json::document document;
  json::object object;
  const simdjson::padded_string_view padded(body.data(), body.size(),
                                            body.size() + simdjson::SIMDJSON_PADDING);
  if (body.empty() || parser.iterate(padded).get(document) != simdjson::SUCCESS) return BadJson();
  if (const auto error = document.get_object().get(object)) {
    return IsSyntaxError(error) ? BadJson() : Invalid("the body must be a JSON object");
  }
  policy::StoredPolicy policy;
  GivenFields given;
  Status read = ReadFields(object, [&](std::string_view name, json::value value) {
    return ReadField(std::string(name), value, policy, given);
  });
  if (!read.ok()) return read.error();
  if (document.current_location().error() == simdjson::SUCCESS) return BadJson();
  if (!given.contains("type") && !policy.unlimited) return Bad("type", "is missing");
  if (!policy.has_match && !policy.type.is_override()) {
    if (Status plain = policy::CheckBareKey(policy.key); !plain.ok()) {
      return Bad("key", plain.error().message);
    }
  }
  if (Status span = CheckSpan(policy, given); !span.ok()) return span.error();
  std::vector<std::string> warnings = PolicyWarnings(policy, given);
  return PolicyBody{std::move(policy), given.contains("domain"), std::move(warnings)};
}

}  // namespace

Result<PolicyBody> ReadPolicyBody(std::string_view body) {
  Result<PolicyBody> read = ReadBody(body);
  if (!read.ok()) return Located(read.error(), body);
  return read;
}

}  // namespace weir::http
