#include "protocol/grpc/rls.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include "envoy/service/ratelimit/v3/rls.pb.h"
#include "protocol/grpc/rls_response.h"

namespace weir::grpc {
namespace {

using envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;
Result<Quota> OverrideQuota(const RateLimitDescriptor::RateLimitOverride& limit) {
  const std::int64_t length = SecondsOf(static_cast<int>(limit.unit()));
  if (length == 0) {
    return Error{Code::kInvalidArgument, "limit.unit of a descriptor must be set"};
  }
  const std::int64_t times = limit.has_unit_multiplier() ? limit.unit_multiplier().value() : 1;
  if (times < 1) {
    return Error{Code::kInvalidArgument, "limit.unit_multiplier must be at least 1"};
  }
  constexpr std::int64_t kMaxSeconds = kMaxWindow / std::chrono::seconds(1);
  if (times > kMaxSeconds / length) {
    return Error{Code::kInvalidArgument, "limit.unit_multiplier makes a window of over 100 years"};
  }
  // A limit of 0 admits nothing: the smallest quota, charged with more than it has.
  const std::int64_t permits = std::max<std::int64_t>(limit.requests_per_unit(), 1);
  return Quota::FixedWindow(permits, std::chrono::seconds(length * times));
}

class ShouldRateLimit final : public DecidingMethod {
 public:
  ShouldRateLimit(Decider& decider, const RlsOptions& options)
      : DecidingMethod(decider), options_(options), response_(options_) {}

  std::unique_ptr<google::protobuf::Message> NewRequest() const override {
    return std::make_unique<RateLimitRequest>();
  }

  bool may_give_back() const noexcept override { return true; }
  bool GivesBack(const google::protobuf::Message& message) const override;
  Status Ask(const google::protobuf::Message& message, Burst& burst) override;
  void Answer(const Job& job, std::span<const limiter::Check> checks, Call& call) override;
  void Refuse(Call& call, std::string_view why) override;

 private:
  static Status AskFor(const RateLimitRequest& request, bool refunds, Burst& burst);
  const RlsOptions options_;
  RlsResponse response_;
};

bool Negative(const RateLimitDescriptor& descriptor) { return descriptor.is_negative_hits(); }

bool ShouldRateLimit::GivesBack(const google::protobuf::Message& message) const {
  const auto& descriptors = static_cast<const RateLimitRequest&>(message).descriptors();
  return std::any_of(descriptors.begin(), descriptors.end(), Negative);
}

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
  const auto refunds =
      std::count_if(request.descriptors().begin(), request.descriptors().end(), Negative);
  if (refunds < request.descriptors_size()) {
    if (Status asked = AskFor(request, false, burst); !asked.ok()) return asked;
  }
  return refunds > 0 ? AskFor(request, true, burst) : Status();
}

/// Adds one check with the descriptors that charge, or with those that refund.
Status ShouldRateLimit::AskFor(const RateLimitRequest& request, bool refunds, Burst& burst) {
  const std::int64_t hits = std::max<std::int64_t>(request.hits_addend(), 1);
  const store::Op op = refunds ? store::Op::kRefund : store::Op::kCharge;
  burst.AddCheck(request.domain(), op, hits).request.each_time = true;
  for (const RateLimitDescriptor& descriptor : request.descriptors()) {
    if (descriptor.is_negative_hits() != refunds) continue;
    if (descriptor.entries_size() > kMaxEntries) {
      return Error{Code::kInvalidArgument,
                   "a descriptor may have at most " + std::to_string(kMaxEntries) + " entries"};
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
    const bool nothing =
        !refunds && descriptor.has_limit() && descriptor.limit().requests_per_unit() == 0;
    // Against the smallest quota this never fits; a cost of 0 stays 0.
    const std::int64_t cost =
        nothing ? 2 * static_cast<std::int64_t>(std::min<std::uint64_t>(own, kMaxLimit))
                : static_cast<std::int64_t>(own);
    burst.AddDescriptor(cost, quota, descriptor.has_hits_addend());
    for (const auto& entry : descriptor.entries()) burst.AddEntry(entry.key(), entry.value());
  }
  return {};
}

void ShouldRateLimit::Answer(const Job& job, std::span<const limiter::Check> checks, Call& call) {
  const RateLimitResponse& response =
      response_.Of(static_cast<const RateLimitRequest&>(*job.request), checks);
  // A limit that is exceeded is reported, even if something else of the same request has failed.
  const bool over = response.overall_code() == RateLimitResponse::OVER_LIMIT;
  for (const limiter::Check& check : checks) {
    if (over || check.status.ok()) continue;
    const Error& error = check.status.error();
    const bool of_request = store::FaultOf(error.code) != store::Fault::kStore;
    const bool charges = check.op == store::Op::kCharge;
    return charges && of_request ? Refuse(call, error.message) : call.Finish(error);
  }
  call.Send(response);
  call.Finish(StatusCode::kOk);
}

/// Envoy lets a request pass whose call fails, unless configured otherwise (failure_mode_deny). So
/// nothing that its client can cause, with a long header or many of them, is an error. A peer that
/// does not read its answers is no Envoy, and gets one that needs no window: calls that wait for
/// window take memory.
void ShouldRateLimit::Refuse(Call& call, std::string_view why) {
  if (!call.session().takes_answers()) return call.Finish(StatusCode::kResourceExhausted, why);
  RateLimitResponse response;
  response.set_overall_code(RateLimitResponse::OVER_LIMIT);
  response.set_raw_body(std::string(why));
  call.Send(response);
  call.Finish(StatusCode::kOk);
}

}  // namespace

std::unique_ptr<Method> MakeShouldRateLimit(Decider& decider, const RlsOptions& options) {
  return std::make_unique<ShouldRateLimit>(decider, options);
}

}  // namespace weir::grpc
