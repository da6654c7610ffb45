#include "admin/policy_body.h"

#include <simdjson.h>

#include <cstdint>
#include <string>
#include <utility>

#include "algorithm/algorithms.h"
#include "base/instant.h"
#include "protocol/http/check_reader.h"

namespace weir::http {
namespace {

namespace json = simdjson::ondemand;

Error Bad(std::string_view field, std::string_view what) {
  return Error{Code::kInvalidArgument, std::string(field).append(": ").append(what)};
}

Error BadJson() { return Error{Code::kInvalidArgument, "the body is not well-formed JSON"}; }

Status ReadText(json::value value, std::string_view field, std::string& text) {
  std::string_view found;
  if (value.get_string().get(found) != simdjson::SUCCESS) return Bad(field, "must be a string");
  text = found;
  return {};
}

Status ReadInteger(json::value value, std::string_view field, std::int64_t& number) {
  if (value.get_int64().get(number) != simdjson::SUCCESS) return Bad(field, "must be an integer");
  return {};
}

Status ReadFlag(json::value value, std::string_view field, bool& flag) {
  if (value.get_bool().get(flag) != simdjson::SUCCESS) return Bad(field, "must be true or false");
  return {};
}

Status ReadType(json::value value, policy::PolicyType& type) {
  std::string name;
  if (Status status = ReadText(value, "type", name); !status.ok()) return status;
  const auto found = policy::ParsePolicyType(name);
  if (!found) {
    return Bad("type", "must be " + algorithm::Listed(&algorithm::Descriptor::type) +
                           ", or OVERRIDE of a file's policy");
  }
  type = *found;
  return {};
}

Status ReadOnStoreError(json::value value, policy::OnStoreError& outcome) {
  std::string name;
  if (Status status = ReadText(value, "onStoreError", name); !status.ok()) return status;
  const auto found = policy::ParseOnStoreError(name);
  if (!found) return Bad("onStoreError", "must be allow, deny or local");
  outcome = *found;
  return {};
}

Status ReadMode(json::value value, policy::Mode& mode) {
  std::string name;
  if (Status status = ReadText(value, "mode", name); !status.ok()) return status;
  const auto found = policy::ParseMode(name);
  if (!found) return Bad("mode", "must be exact or leased");
  mode = *found;
  return {};
}

Status ReadCharge(json::value value, policy::ChargeMode& charge) {
  std::string name;
  if (Status status = ReadText(value, "charge", name); !status.ok()) return status;
  const auto found = policy::ParseChargeMode(name);
  if (!found) return Bad("charge", "must be all_or_none, each or always");
  charge = *found;
  return {};
}

Status ReadExpiry(json::value value, Nanos& expiry) {
  expiry = 0;
  if (value.is_null()) return {};
  std::string text;
  if (Status status = ReadText(value, "expiresAt", text); !status.ok()) return status;
  const auto instant = ParseInstant(text);
  if (!instant) return Bad("expiresAt", "must be a time like 2030-01-31T12:00:00Z, or null");
  expiry = *instant;
  return {};
}

Status ReadMatch(json::value value, policy::StoredPolicy& policy) {
  json::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) {
    return Bad("match", "must be an object of names and values");
  }
  policy.has_match = true;
  policy.match.clear();
  for (auto element : object) {
    json::field field;
    std::string_view name;
    if (std::move(element).get(field) != simdjson::SUCCESS) return BadJson();
    if (field.unescaped_key().get(name) != simdjson::SUCCESS) return BadJson();
    if (policy.match.size() == policy::kMaxMatchEntries)
      return Bad("match", "has too many entries");
    std::string entry(name);
    std::string text;
    if (Status status = ReadText(field.value(), "match." + entry, text); !status.ok())
      return status;
    policy.match.push_back(policy::MakeEntryMatch(std::move(entry), text));
  }
  return {};
}

Status ReadField(std::string_view name, json::value value, policy::StoredPolicy& policy) {
  if (name == "key" || name == "policyKey") return ReadText(value, name, policy.key);
  if (name == "type") return ReadType(value, policy.type);
  if (name == "capacity") return ReadInteger(value, name, policy.capacity);
  if (name == "refillRate") return ReadInteger(value, name, policy.refill_rate);
  if (name == "windowSeconds") return ReadInteger(value, name, policy.window_seconds);
  if (name == "buckets") return ReadInteger(value, name, policy.buckets);
  if (name == "domain") return ReadText(value, name, policy.domain);
  if (name == "match") return ReadMatch(value, policy);
  if (name == "shadow") return ReadFlag(value, name, policy.shadow);
  if (name == "unlimited") return ReadFlag(value, name, policy.unlimited);
  if (name == "onStoreError") return ReadOnStoreError(value, policy.on_store_error);
  if (name == "mode") return ReadMode(value, policy.mode);
  if (name == "overdraw") return ReadFlag(value, name, policy.overdraw);
  if (name == "charge") return ReadCharge(value, policy.charge);
  if (name == "cost") return ReadInteger(value, name, policy.cost);
  if (name == "expiresAt") return ReadExpiry(value, policy.expires_at);
  // What GET answers may be sent back as it is.
  std::int64_t ignored = 0;
  if (name == "id" || name == "version") return ReadInteger(value, name, ignored);
  std::string text;
  if (name == "createdAt" || name == "updatedAt" || name == "source") {
    return ReadText(value, name, text);
  }
  return Bad(
      name.substr(0, kMaxNameBytes),
      "is not a field of a policy; those are key, type, capacity, refillRate, windowSeconds, "
      "buckets, domain, match, shadow, unlimited, onStoreError, mode, overdraw, charge, cost and "
      "expiresAt");
}

}  // namespace

Result<policy::StoredPolicy> ReadPolicy(std::string_view body) {
  json::parser parser;
  json::document document;
  json::object object;
  const simdjson::padded_string_view padded(body.data(), body.size(),
                                            body.size() + simdjson::SIMDJSON_PADDING);
  if (body.empty() || parser.iterate(padded).get(document) != simdjson::SUCCESS) return BadJson();
  if (document.get_object().get(object) != simdjson::SUCCESS) {
    return Error{Code::kInvalidArgument, "the body must be a JSON object"};
  }
  policy::StoredPolicy policy;
  bool has_type = false;
  for (auto element : object) {
    json::field field;
    std::string_view name;
    if (std::move(element).get(field) != simdjson::SUCCESS) return BadJson();
    if (field.unescaped_key().get(name) != simdjson::SUCCESS) return BadJson();
    has_type = has_type || name == "type";
    const std::string copy(name);
    if (Status status = ReadField(copy, field.value(), policy); !status.ok()) return status.error();
  }
  if (document.current_location().error() == simdjson::SUCCESS) return BadJson();
  if (!has_type && !policy.unlimited) return Bad("type", "is missing");
  return policy;
}

}  // namespace weir::http
