#include "protocol/grpc/rls_response.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "filter/headers.h"
#include "policy/policy_set.h"

namespace weir::grpc {
namespace {

using envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
using envoy::service::ratelimit::v3::RateLimitResponse;
using filter::CeilSeconds;
using Unit = RateLimitResponse::RateLimit;
using google::protobuf::Struct;
using limiter::PolicyVerdict;

constexpr std::uint32_t kMaxUint32 = std::numeric_limits<std::uint32_t>::max();

struct UnitLength {
  Unit::Unit unit;
  std::chrono::seconds length;
};

// The longest first. A month is 30 days and a year 365, as in Envoy's own rate limit service.
constexpr UnitLength kUnits[] = {
    {Unit::YEAR, std::chrono::seconds(31536000)}, {Unit::MONTH, std::chrono::seconds(2592000)},
    {Unit::WEEK, std::chrono::seconds(604800)},   {Unit::DAY, std::chrono::seconds(86400)},
    {Unit::HOUR, std::chrono::seconds(3600)},     {Unit::MINUTE, std::chrono::seconds(60)},
    {Unit::SECOND, std::chrono::seconds(1)}};

std::uint32_t Clamp32(std::int64_t value) noexcept {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, kMaxUint32));
}

/// The verdict that a descriptor's status reports: the strictest of those that are enforced, else
/// of those in shadow mode.
const PolicyVerdict* Strictest(std::span<const PolicyVerdict> verdicts) noexcept {
  const auto stricter = [](const PolicyVerdict& a, const PolicyVerdict& b) {
    if (a.shadow != b.shadow) return b.shadow;
    if (a.decision.allowed() != b.decision.allowed()) return b.decision.allowed();
    if ((a.quota == nullptr) != (b.quota == nullptr)) return b.quota == nullptr;
    return a.decision.remaining < b.decision.remaining;
  };
  const auto strictest = std::min_element(verdicts.begin(), verdicts.end(), stricter);
  return strictest == verdicts.end() ? nullptr : &*strictest;
}

/// Whole seconds, rounded up: Envoy shows only the seconds. A fixed window ends whether or not
/// anything was charged in it.
std::int64_t SecondsToReset(const PolicyVerdict& verdict, Nanos now) noexcept {
  const bool untouched = verdict.decision.reset_after == std::chrono::nanoseconds(0);
  if (!untouched || verdict.quota->algorithm() != Algorithm::kFixedWindow) {
    return CeilSeconds(verdict.decision.reset_after);
  }
  const Nanos window = verdict.quota->window().count();
  const Nanos elapsed = now % window;
  return CeilSeconds(std::chrono::nanoseconds(window - std::max<Nanos>(elapsed, 0)));
}

bool InQuotaMode(const PolicyVerdict& verdict) noexcept {
  return verdict.rule != nullptr && verdict.rule->definition.quota_mode && verdict.shadow;
}

/// Adds what `into` does not have yet, recursively into structs.
// NOLINTNEXTLINE(misc-no-recursion): the depth of a policy file is bounded
void Merge(const Struct& from, Struct& into) {
  for (const auto& [name, value] : from.fields()) {
    const auto [found, is_new] = into.mutable_fields()->insert({name, value});
    if (!is_new && found->second.has_struct_value() && value.has_struct_value()) {
      Merge(value.struct_value(), *found->second.mutable_struct_value());
    }
  }
}

}  // namespace

void SetWindow(const Quota& quota, RateLimitResponse::RateLimit& limit) {
  if (quota.algorithm() == Algorithm::kConcurrency) return;  // has a lease, but no window
  const std::chrono::nanoseconds window = quota.window();
  for (const auto& [unit, length] : kUnits) {
    if (window % length != std::chrono::nanoseconds(0)) continue;
    limit.set_unit(unit);
    const std::int64_t times = window / length;
    if (times > 1) limit.mutable_unit_multiplier()->set_value(Clamp32(times));
    return;
  }
}

std::int64_t SecondsOf(int unit) noexcept {
  for (const auto& [known, length] : kUnits) {
    if (static_cast<int>(known) == unit) return length.count();
  }
  return 0;
}

const RateLimitResponse& RlsResponse::Of(const Request& request,
                                         std::span<const limiter::Check> checks) {
  response_.Clear();
  shown_ = nullptr;
  over_quota_.clear();
  quotas_ = 0;
  metadata_.clear();
  now_ = (options_.clock != nullptr ? *options_.clock : SystemClock::Get()).Now();
  response_.set_overall_code(RateLimitResponse::OK);
  AddStatuses(request, checks);
  // One of several quotas suffices; with none left there is nothing to fall back on.
  if (quotas_ > 0 && over_quota_.size() == quotas_) {
    response_.set_overall_code(RateLimitResponse::OVER_LIMIT);
  }
  if (std::ranges::any_of(checks, &limiter::Check::refused_unmatched)) RefuseUnmatched();
  if (options_.headers) AddHeaders(checks);
  if (options_.dynamic_metadata) AddMetadata(request);
  return response_;
}

void RlsResponse::AddStatuses(const Request& request, std::span<const limiter::Check> checks) {
  // Each check has its own descriptors, counted from 0, and its verdicts in their order.
  struct Cursor {
    std::span<const PolicyVerdict> verdicts;
    std::size_t descriptor = 0;
  };
  Cursor charges;
  Cursor refunds;
  for (const limiter::Check& check : checks) {
    (check.op == store::Op::kRefund ? refunds : charges).verdicts = check.verdicts;
  }
  for (const RateLimitDescriptor& descriptor : request.descriptors()) {
    Cursor& cursor = descriptor.is_negative_hits() ? refunds : charges;
    std::size_t count = 0;
    while (count < cursor.verdicts.size() &&
           cursor.verdicts[count].descriptor == cursor.descriptor) {
      ++count;
    }
    AddStatus(descriptor, Strictest(cursor.verdicts.first(count)));
    cursor.verdicts = cursor.verdicts.subspan(count);
    ++cursor.descriptor;
  }
}

void RlsResponse::AddStatus(const RateLimitDescriptor& descriptor, const PolicyVerdict* verdict) {
  const int index = response_.statuses_size();
  RateLimitResponse::DescriptorStatus& status = *response_.add_statuses();
  status.set_code(RateLimitResponse::OK);
  if (verdict == nullptr) return;
  if (verdict->quota == nullptr) return status.set_limit_remaining(kMaxUint32);
  const bool over = !verdict->decision.allowed();
  const bool nothing = descriptor.has_limit() && descriptor.limit().requests_per_unit() == 0;
  auto& limit = *status.mutable_current_limit();
  limit.set_requests_per_unit(nothing ? 0 : Clamp32(verdict->decision.limit));
  SetWindow(*verdict->quota, limit);
  if (verdict->rule != nullptr) limit.set_name(verdict->rule->definition.limit_name);
  status.set_limit_remaining(over || nothing ? 0 : Clamp32(verdict->decision.remaining));
  status.mutable_duration_until_reset()->set_seconds(SecondsToReset(*verdict, now_));
  const bool quota = InQuotaMode(*verdict);
  const bool shown_over = over && (quota || !verdict->shadow);
  if (shown_over) status.set_code(RateLimitResponse::OVER_LIMIT);
  if (quota) ++quotas_;
  if (quota && over) over_quota_.push_back(index);
  if (!shown_over && verdict->rule != nullptr && !verdict->rule->definition.metadata.empty()) {
    metadata_.push_back(verdict->rule->definition.metadata);
  }
  if (verdict->shadow) return;
  if (over) response_.set_overall_code(RateLimitResponse::OVER_LIMIT);
  const PolicyVerdict both[] = {shown_ != nullptr ? *shown_ : *verdict, *verdict};
  if (shown_ != nullptr && Strictest(both) != &both[1]) return;
  shown_ = verdict;
  shown_status_ = index;
}

/// No descriptor is over a limit, but the request is refused. Envoy shows its client the body.
void RlsResponse::RefuseUnmatched() {
  response_.set_overall_code(RateLimitResponse::OVER_LIMIT);
  response_.set_raw_body(std::string(filter::kUnmatched));
}

void RlsResponse::AddHeaders(std::span<const limiter::Check> checks) {
  if (shown_ != nullptr) AddLimitHeaders();
  for (const limiter::Check& check : checks) {
    if (!check.degraded_by.empty()) AddHeader("x-ratelimit-degraded", check.degraded_by);
  }
}

void RlsResponse::AddLimitHeaders() {
  const RateLimitResponse::DescriptorStatus& status = response_.statuses(shown_status_);
  AddHeader(options_.limit_header, std::to_string(status.current_limit().requests_per_unit()));
  AddHeader(options_.remaining_header, std::to_string(status.limit_remaining()));
  AddHeader(options_.reset_header, std::to_string(status.duration_until_reset().seconds()));
  if (shown_->decision.verdict == Verdict::kLimited) {
    AddHeader("retry-after", std::to_string(CeilSeconds(shown_->decision.retry_after)));
  }
}

void RlsResponse::AddHeader(std::string_view name, std::string_view value) {
  auto& header = *response_.add_response_headers_to_add();
  header.set_key(name.data(), name.size());
  header.set_value(value.data(), value.size());
}

/// For access logs and filters after the rate limit filter: what was requested, which descriptors
/// are over a limit in quota mode, and the metadata of the limits that are not
/// over.
void RlsResponse::AddMetadata(const Request& request) {
  auto& fields = *response_.mutable_dynamic_metadata()->mutable_fields();
  fields["domain"].set_string_value(request.domain());
  if (request.hits_addend() != 0) fields["hitsAddend"].set_number_value(request.hits_addend());
  auto& descriptors = *fields["descriptors"].mutable_list_value();
  for (const RateLimitDescriptor& descriptor : request.descriptors()) {
    auto& told = *descriptors.add_values()->mutable_struct_value()->mutable_fields();
    auto& entries = *told["entries"].mutable_list_value();
    for (const auto& entry : descriptor.entries()) {
      // Envoy could not read an answer with a string that is not UTF-8.
      const std::string text = entry.key() + "=" + entry.value();
      entries.add_values()->set_string_value(StorableUtf8(text, 4 * text.size()));
    }
    if (descriptor.has_hits_addend()) {
      told["hitsAddend"].set_number_value(static_cast<double>(descriptor.hits_addend().value()));
    }
  }
  AddOwnMetadata();
  fields["quotaModeEnabled"].set_bool_value(quotas_ > 0);
  if (over_quota_.empty()) return;
  auto& violations = *fields["quotaModeViolations"].mutable_list_value();
  for (const int index : over_quota_) violations.add_values()->set_number_value(index);
}

/// If two limits set the same field, the first wins.
void RlsResponse::AddOwnMetadata() {
  if (metadata_.empty()) return;
  Struct all;
  for (const std::string_view json : metadata_) {
    Struct one;
    const auto status = google::protobuf::util::JsonStringToMessage(std::string(json), &one);
    if (status.ok()) Merge(one, all);
  }
  *(*response_.mutable_dynamic_metadata()->mutable_fields())["metadata"].mutable_struct_value() =
      std::move(all);
}

}  // namespace weir::grpc
