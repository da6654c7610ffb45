// Quotas in YAML. Split from the policies around them, since the configuration's default_policy is
// written the same way.

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "policy/policy_file.h"

namespace weir::policy {
namespace {

using yaml::Fields;
using yaml::Node;
using yaml::Report;

constexpr std::array<std::string_view, 5> kAlgorithms = {
    "token_bucket", "fixed_window", "sliding_log", "sliding_counter", "concurrency"};

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
  std::int64_t refill = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), refill);
  if (problem != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return Rate{refill, std::chrono::seconds(seconds)};
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
  // A value of the wrong type has been reported where it stands.
  if (!value && report.clean()) {
    report.Add(fields.mark(), what + ": " + std::string(name) + " is missing");
  }
  return value.has_value();
}

std::optional<Quota> Checked(Result<Quota> quota, const Fields& fields, const std::string& what,
                             Report& report) {
  if (quota.ok()) return *quota;
  report.Add(fields.mark(), what + ": " + quota.error().message);
  return std::nullopt;
}

std::optional<Quota> ReadTokenBucket(Fields& fields, const std::string& what, Report& report) {
  const std::optional<std::int64_t> capacity = fields.Int("capacity");
  const std::optional<Rate> rate = ReadRate(fields, what, report);
  fields.Finish();
  if (!Require(capacity, fields, what, "capacity", report) || !rate) return std::nullopt;
  return Checked(Quota::TokenBucket(*capacity, rate->refill, rate->period), fields, what, report);
}

std::optional<Quota> ReadWindowed(std::string_view algorithm, Fields& fields,
                                  const std::string& what, Report& report) {
  const bool concurrency = algorithm == "concurrency";
  const std::string_view span_name = concurrency ? "lease" : "window";
  const std::optional<std::int64_t> limit = fields.Int("limit");
  const std::optional<std::chrono::nanoseconds> span = fields.Duration(span_name);
  std::optional<std::int64_t> buckets;
  if (algorithm == "sliding_counter") buckets = fields.Int("buckets");
  fields.Finish();
  if (!Require(limit, fields, what, "limit", report)) return std::nullopt;
  if (!Require(span, fields, what, span_name, report)) return std::nullopt;
  if (concurrency) return Checked(Quota::Concurrency(*limit, *span), fields, what, report);
  if (algorithm == "fixed_window") {
    return Checked(Quota::FixedWindow(*limit, *span), fields, what, report);
  }
  if (algorithm == "sliding_log") {
    return Checked(Quota::SlidingLog(*limit, *span), fields, what, report);
  }
  return Checked(buckets ? Quota::SlidingCounter(*limit, *span, *buckets)
                         : Quota::SlidingCounter(*limit, *span),
                 fields, what, report);
}

}  // namespace

ChargeMode ReadChargeMode(Fields& fields, Report& report) {
  const Node* node = fields.Take("charge");
  if (node == nullptr) return ChargeMode::kAllOrNone;
  const std::optional<std::string> text = yaml::AsText(*node, "charge", report);
  const std::optional<ChargeMode> mode = text ? ParseChargeMode(*text) : std::nullopt;
  if (text && !mode) {
    report.Add(node->mark,
               "charge: expected all_or_none, each or always, got '" + text->substr(0, 64) + "'");
  }
  return mode.value_or(ChargeMode::kAllOrNone);
}

std::optional<Quota> ParseQuota(const Node& node, Report& report) {
  constexpr std::string_view kList =
      "token_bucket, fixed_window, sliding_log, sliding_counter or concurrency";
  if (node.kind != Node::Kind::kMapping || node.fields.size() != 1) {
    report.Add(node.mark, "quota: expected exactly one of " + std::string(kList));
    return std::nullopt;
  }
  const auto& [name, body] = node.fields.front();
  bool known = false;
  for (const std::string_view algorithm : kAlgorithms) known = known || algorithm == name->scalar;
  if (!known) {
    std::string message = "quota: unknown algorithm '" + name->scalar.substr(0, 64) + "'; ";
    if (auto nearest = yaml::Nearest(name->scalar, kAlgorithms)) {
      message += "did you mean '" + std::string(*nearest) + "'?";
    } else {
      message += "expected " + std::string(kList);
    }
    report.Add(name->mark, std::move(message));
    return std::nullopt;
  }
  const std::string& what = name->scalar;
  Fields fields(*body, what, report);
  if (!fields.is_mapping()) return std::nullopt;
  if (what == "token_bucket") return ReadTokenBucket(fields, what, report);
  return ReadWindowed(what, fields, what, report);
}

}  // namespace weir::policy
