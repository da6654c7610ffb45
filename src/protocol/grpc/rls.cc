#include "protocol/grpc/rls.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include "envoy/service/ratelimit/v3/rls.pb.h"

namespace weir::grpc {
namespace {

using envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;
using Unit = RateLimitResponse::RateLimit;

constexpr std::uint32_t kMaxUint32 = std::numeric_limits<std::uint32_t>::max();

struct UnitLength {
  Unit::Unit unit;
  std::chrono::seconds length;
};

// A month is 30 days and a year 365, as Envoy's own rate limit service has it.
constexpr UnitLength kUnits[] = {
    {Unit::SECOND, std::chrono::seconds(1)},      {Unit::MINUTE, std::chrono::seconds(60)},
    {Unit::HOUR, std::chrono::seconds(3600)},     {Unit::DAY, std::chrono::seconds(86400)},
    {Unit::MONTH, std::chrono::seconds(2592000)}, {Unit::YEAR, std::chrono::seconds(31536000)},
};

std::uint32_t Clamp32(std::int64_t value) noexcept {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, kMaxUint32));
}

std::int64_t CeilSeconds(std::chrono::nanoseconds duration) noexcept {
  return std::max<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(duration).count(), 0);
}

Unit::Unit UnitOf(const Quota& quota) noexcept {
  for (const auto& [unit, length] : kUnits) {
    if (quota.window() == length) return unit;
  }
  return Unit::UNKNOWN;
}

Result<Quota> OverrideQuota(const RateLimitDescriptor::RateLimitOverride& limit) {
  const auto unit = static_cast<int>(limit.unit());
  const auto* found = std::find_if(std::begin(kUnits), std::end(kUnits), [unit](const auto& known) {
    return static_cast<int>(known.unit) == unit;
  });
  if (found == std::end(kUnits)) {
    return Error{Code::kInvalidArgument, "limit.unit of a descriptor must name a unit"};
  }
  const std::int64_t times = limit.has_unit_multiplier() ? limit.unit_multiplier().value() : 1;
  if (times < 1) {
    return Error{Code::kInvalidArgument, "limit.unit_multiplier must be at least 1"};
  }
  constexpr std::int64_t kMaxSeconds = kMaxWindow / std::chrono::seconds(1);
  if (times > kMaxSeconds / found->length.count()) {
    return Error{Code::kInvalidArgument, "limit.unit_multiplier makes a window of over 100 years"};
  }
  // A limit of 0 admits nothing: the smallest quota, which is then asked for more than it has.
  const std::int64_t permits = std::max<std::int64_t>(limit.requests_per_unit(), 1);
  return Quota::FixedWindow(permits, found->length * times);
}

/// The verdict that a descriptor's status tells of: the strictest of those that are enforced, else
/// of those that only watch.
const limiter::PolicyVerdict* Strictest(std::span<const limiter::PolicyVerdict> verdicts) noexcept {
  const auto stricter = [](const limiter::PolicyVerdict& a, const limiter::PolicyVerdict& b) {
    if (a.shadow != b.shadow) return b.shadow;
    if (a.decision.allowed() != b.decision.allowed()) return b.decision.allowed();
    if ((a.quota == nullptr) != (b.quota == nullptr)) return b.quota == nullptr;
    return a.decision.remaining < b.decision.remaining;
  };
  const auto strictest = std::min_element(verdicts.begin(), verdicts.end(), stricter);
  return strictest == verdicts.end() ? nullptr : &*strictest;
}

void FillStatus(const limiter::PolicyVerdict* verdict,
                RateLimitResponse::DescriptorStatus& status) {
  status.set_code(RateLimitResponse::OK);
  if (verdict == nullptr) return;
  if (verdict->quota == nullptr) {
    status.set_limit_remaining(kMaxUint32);
    return;
  }
  if (!verdict->shadow && !verdict->decision.allowed()) {
    status.set_code(RateLimitResponse::OVER_LIMIT);
  }
  auto& limit = *status.mutable_current_limit();
  limit.set_name(verdict->policy.data(), verdict->policy.size());
  limit.set_requests_per_unit(Clamp32(verdict->decision.limit));
  limit.set_unit(UnitOf(*verdict->quota));
  status.set_limit_remaining(Clamp32(verdict->decision.remaining));
  // Whole seconds, rounded up, as Envoy's own service: Envoy shows the seconds alone.
  status.mutable_duration_until_reset()->set_seconds(CeilSeconds(verdict->decision.reset_after));
}

class ShouldRateLimit final : public DecidingMethod {
 public:
  ShouldRateLimit(Decider& decider, const RlsOptions& options)
      : DecidingMethod(decider), options_(options) {}

  std::unique_ptr<google::protobuf::Message> NewRequest() const override {
    return std::make_unique<RateLimitRequest>();
  }

  Status Ask(const google::protobuf::Message& message, Burst& burst) override;
  void Answer(const Job& job, std::span<const limiter::Check> checks, Call& call) override;

 private:
  static Status AskFor(const RateLimitRequest& request, bool refunds, Burst& burst);
  void AddHeaders(const limiter::PolicyVerdict& verdict);
  void AddHeader(std::string_view name, std::int64_t value);
  void AddDegraded(const limiter::Check& check);

  const RlsOptions options_;
  RateLimitResponse response_;
};

Status ShouldRateLimit::Ask(const google::protobuf::Message& message, Burst& burst) {
  const auto& request = static_cast<const RateLimitRequest&>(message);
  if (request.domain().empty()) {
    return Error{Code::kInvalidArgument, "rate limit domain must not be empty"};
  }
  if (request.descriptors().empty()) {
    return Error{Code::kInvalidArgument, "rate limit descriptor list must not be empty"};
  }
  if (request.descriptors_size() > kMaxDescriptors) {
    return Error{Code::kInvalidArgument,
                 "at most " + std::to_string(kMaxDescriptors) + " descriptors per request"};
  }
  const auto negative = [](const RateLimitDescriptor& d) { return d.is_negative_hits(); };
  const auto refunds =
      std::count_if(request.descriptors().begin(), request.descriptors().end(), negative);
  if (refunds < request.descriptors_size()) {
    if (Status asked = AskFor(request, false, burst); !asked.ok()) return asked;
  }
  return refunds > 0 ? AskFor(request, true, burst) : Status();
}

/// Adds one check with the descriptors that charge, or with those that give back.
Status ShouldRateLimit::AskFor(const RateLimitRequest& request, bool refunds, Burst& burst) {
  const std::int64_t hits = std::max<std::int64_t>(request.hits_addend(), 1);
  burst.AddCheck(request.domain(), refunds ? store::Op::kRefund : store::Op::kCharge, hits);
  for (const RateLimitDescriptor& descriptor : request.descriptors()) {
    if (descriptor.is_negative_hits() != refunds) continue;
    if (descriptor.entries().empty() || descriptor.entries_size() > kMaxEntries) {
      return Error{Code::kInvalidArgument,
                   "a descriptor must have 1 to " + std::to_string(kMaxEntries) + " entries"};
    }
    std::optional<Quota> quota;
    if (descriptor.has_limit()) {
      Result<Quota> made = OverrideQuota(descriptor.limit());
      if (!made.ok()) return made.error();
      quota = *made;
    }
    const std::uint64_t own = descriptor.has_hits_addend() ? descriptor.hits_addend().value()
                                                           : static_cast<std::uint64_t>(hits);
    if (own > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return Error{Code::kInvalidArgument, "hits_addend of a descriptor is too large"};
    }
    const bool nothing = descriptor.has_limit() && descriptor.limit().requests_per_unit() == 0;
    burst.AddDescriptor(nothing && own == 1 ? 2 : static_cast<std::int64_t>(own), quota);
    for (const auto& entry : descriptor.entries()) burst.AddEntry(entry.key(), entry.value());
  }
  return {};
}

void ShouldRateLimit::Answer(const Job& job, std::span<const limiter::Check> checks, Call& call) {
  for (const limiter::Check& check : checks) {
    if (!check.status.ok()) return call.Finish(check.status.error());
  }
  const auto& request = static_cast<const RateLimitRequest&>(*job.request);
  response_.Clear();
  RateLimitResponse::Code overall = RateLimitResponse::OK;
  const limiter::PolicyVerdict* shown = nullptr;
  // Each check has its own descriptors, counted from 0, and its verdicts in their order.
  struct Cursor {
    std::span<const limiter::PolicyVerdict> verdicts;
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
    const limiter::PolicyVerdict* strictest = Strictest(cursor.verdicts.first(count));
    cursor.verdicts = cursor.verdicts.subspan(count);
    ++cursor.descriptor;
    auto& status = *response_.add_statuses();
    FillStatus(strictest, status);
    if (status.code() == RateLimitResponse::OVER_LIMIT) overall = RateLimitResponse::OVER_LIMIT;
    if (strictest == nullptr || strictest->quota == nullptr || strictest->shadow) continue;
    const limiter::PolicyVerdict both[] = {shown != nullptr ? *shown : *strictest, *strictest};
    if (shown == nullptr || Strictest(both) == &both[1]) shown = strictest;
  }
  response_.set_overall_code(overall);
  if (shown != nullptr) AddHeaders(*shown);
  for (const limiter::Check& check : checks) AddDegraded(check);
  call.Send(response_);
  call.Finish(StatusCode::kOk);
}

void ShouldRateLimit::AddHeaders(const limiter::PolicyVerdict& verdict) {
  if (options_.x_ratelimit) {
    AddHeader("x-ratelimit-limit", verdict.decision.limit);
    AddHeader("x-ratelimit-remaining", verdict.decision.remaining);
    AddHeader("x-ratelimit-reset", CeilSeconds(verdict.decision.reset_after));
  }
  if (options_.retry_after && verdict.decision.verdict == Verdict::kLimited) {
    AddHeader("retry-after", CeilSeconds(verdict.decision.retry_after));
  }
}

void ShouldRateLimit::AddDegraded(const limiter::Check& check) {
  if (check.degraded_by.empty()) return;
  auto& header = *response_.add_response_headers_to_add();
  header.set_key("x-ratelimit-degraded");
  header.set_value(check.degraded_by.data(), check.degraded_by.size());
}

void ShouldRateLimit::AddHeader(std::string_view name, std::int64_t value) {
  char digits[20];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  auto& header = *response_.add_response_headers_to_add();
  header.set_key(name.data(), name.size());
  header.set_value(digits, static_cast<std::size_t>(end - digits));
}

}  // namespace

std::unique_ptr<Method> MakeShouldRateLimit(Decider& decider, const RlsOptions& options) {
  return std::make_unique<ShouldRateLimit>(decider, options);
}

}  // namespace weir::grpc
