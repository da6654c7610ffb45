// Quotas in YAML. Separate from the policies around them, since the configuration's default_policy
// uses the same syntax.

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/algorithms.h"
#include "base/ascii.h"
#include "base/nearest.h"
#include "base/number.h"
#include "policy/policy_file.h"
#include "policy/yaml_json.h"

namespace weir::policy {
namespace {

using yaml::Fields;
using yaml::Node;
using yaml::Report;

struct Rate {
  std::int64_t refill = 0;
  std::chrono::nanoseconds period{0};
};

// 2.5 per second is 25 per 10 s: decimals stay exact.
std::optional<Rate> ParseRate(std::string_view text) {
  constexpr std::size_t kMaxDecimals = 6;
  std::string digits(text);
  std::int64_t seconds = 1;
  if (const std::size_t point = digits.find('.'); point != std::string::npos) {
    const std::size_t decimals = digits.size() - point - 1;
    if (decimals == 0 || decimals > kMaxDecimals) return std::nullopt;
    digits.erase(point, 1);
    for (std::size_t i = 0; i < decimals; ++i) seconds *= 10;
  }
  const auto refill = ParseNumber<std::int64_t>(digits);
  if (!refill) return std::nullopt;
  return Rate{*refill, std::chrono::seconds(seconds)};
}

std::optional<Rate> ReadRate(Fields& fields, const std::string& what, Report& report) {
  const Node* per_second = fields.Take("refill_per_second");
  const std::optional<std::int64_t> refill = fields.Int("refill");
  const std::optional<std::chrono::nanoseconds> period = fields.Duration("period");
  if (per_second != nullptr) {
    if (refill || period) {
      report.Add(per_second->mark,
                 what + ": give refill_per_second, or refill and period, but not both");
      return std::nullopt;
    }
    std::optional<Rate> rate;
    if (per_second->kind == Node::Kind::kScalar) rate = ParseRate(per_second->scalar);
    if (!rate) {
      report.Add(per_second->mark, what +
                                       ".refill_per_second: expected a number with at most six "
                                       "decimals, such as 10 or 0.5");
    }
    return rate;
  }
  if (refill && period) return Rate{*refill, *period};
  report.Add(fields.mark(), what + ": expected refill_per_second, or refill and period");
  return std::nullopt;
}

template <typename T>
bool Require(const std::optional<T>& value, const Fields& fields, const std::string& what,
             std::string_view name, Report& report) {
  // A value of the wrong type has already been reported.
  if (!value && report.clean()) {
    report.Add(fields.mark(), what + ": " + std::string(name) + " is missing");
  }
  return value.has_value();
}

/// The numbers that the algorithm uses; nullopt if one of them is missing or invalid.
std::optional<algorithm::Numbers> ReadNumbers(const algorithm::Descriptor& kind, Fields& fields,
                                              const std::string& what, Report& report) {
  algorithm::Numbers numbers;
  const std::optional<std::int64_t> limit = fields.Int(kind.limit_name);
  if (kind.refills()) {
    const std::optional<Rate> rate = ReadRate(fields, what, report);
    fields.Finish();
    if (!Require(limit, fields, what, kind.limit_name, report) || !rate) return std::nullopt;
    numbers.refill = rate->refill;
    numbers.period = rate->period;
  } else {
    const std::optional<std::chrono::nanoseconds> span = fields.Duration(kind.span_name);
    if (kind.has_buckets) numbers.buckets = fields.Int("buckets").value_or(numbers.buckets);
    fields.Finish();
    if (!Require(limit, fields, what, kind.limit_name, report)) return std::nullopt;
    if (!Require(span, fields, what, kind.span_name, report)) return std::nullopt;
    numbers.window = *span;
  }
  numbers.limit = *limit;
  return numbers;
}

/// The algorithm with this name in policy files; else reports what may have been meant.
const algorithm::Descriptor* FindKind(const Node& name, Report& report) {
  std::vector<std::string_view> names;
  for (const algorithm::Descriptor& each : algorithm::kAlgorithms) {
    if (each.name == name.scalar) return &each;
    names.push_back(each.name);
  }
  std::string message = "quota: unknown algorithm '" + name.scalar.substr(0, 64) + "'; ";
  // The admin API's SLIDING_WINDOW, in upper or lower case.
  std::string type = name.scalar;
  for (char& c : type) c = Upper(c);
  const algorithm::Descriptor* by_type = algorithm::FindNamed(type);
  const std::optional<std::string_view> nearest =
      by_type != nullptr ? by_type->name : Nearest(name.scalar, names);
  if (nearest) {
    message += "did you mean '" + std::string(*nearest) + "'?";
  } else {
    message += "expected " + algorithm::Listed(&algorithm::Descriptor::name);
  }
  report.Add(name.mark, std::move(message));
  return nullptr;
}

}  // namespace

std::string ReadMetadata(Fields& fields, Report& report) {
  const Node* node = fields.Take("metadata");
  if (node == nullptr) return {};
  std::string json = yaml::ToJson(*node);
  if (node->kind != Node::Kind::kMapping) {
    report.Add(node->mark, "metadata: expected a mapping");
  } else if (json.size() > kMaxMetadataBytes) {
    report.Add(node->mark,
               "metadata: longer than " + std::to_string(kMaxMetadataBytes) + " bytes as JSON");
  } else {
    return json;
  }
  return {};
}

ChargeMode ReadChargeMode(Fields& fields, Report& report, ChargeMode usual) {
  const Node* node = fields.Take("charge");
  if (node == nullptr) return usual;
  const std::optional<std::string> text = yaml::AsText(*node, "charge", report);
  const std::optional<ChargeMode> mode = text ? ParseChargeMode(*text) : std::nullopt;
  if (text && !mode) {
    AddWrongName(*node, "charge", {"all_or_none", "reports", "each", "always"}, report);
  }
  return mode.value_or(usual);
}

std::optional<Quota> ParseQuota(const Node& node, Report& report) {
  if (node.kind != Node::Kind::kMapping || node.fields.size() != 1) {
    report.Add(node.mark,
               "quota: expected exactly one of " + algorithm::Listed(&algorithm::Descriptor::name));
    return std::nullopt;
  }
  const auto& [name, body] = node.fields.front();
  const algorithm::Descriptor* kind = FindKind(*name, report);
  if (kind == nullptr) return std::nullopt;
  const std::string& what = name->scalar;
  Fields fields(*body, what, report);
  if (!fields.is_mapping()) return std::nullopt;
  const auto numbers = ReadNumbers(*kind, fields, what, report);
  if (!numbers) return std::nullopt;
  const Result<Quota> quota = kind->make(*numbers);
  if (quota.ok()) return *quota;
  report.Add(fields.mark(), what + ": " + quota.error().message);
  return std::nullopt;
}

}  // namespace weir::policy
