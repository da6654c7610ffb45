#include "protocol/grpc/weir_service.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "protocol/grpc/rls.h"
#include "store/reserve/reservation.h"
#include "weir/v1/weir.pb.h"

namespace weir::grpc {
namespace {

v1::Verdict ToProto(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::kAllowed:
      return v1::ALLOWED;
    case Verdict::kLimited:
      return v1::LIMITED;
    case Verdict::kNever:
      return v1::NEVER;
    case Verdict::kInvalid:  // refused before this point
      break;
  }
  return v1::VERDICT_UNSPECIFIED;
}

/// CheckResponse and PolicyVerdict share these fields.
template <typename Message>
void FillDecision(const Decision& decision, Message& message) {
  message.set_verdict(ToProto(decision.verdict));
  message.set_limit(decision.limit);
  message.set_remaining(decision.remaining);
  message.set_retry_after_ns(decision.retry_after.count());
  message.set_reset_after_ns(decision.reset_after.count());
}

void FillStanding(const limiter::Check& check, v1::CheckResponse& response) {
  FillDecision(check.decision, response);
  response.set_policy(check.policy.data(), check.policy.size());
  response.set_lease(check.decision.lease);
  if (check.decision.lease != 0) limiter::AppendPermits(*response.mutable_leases(), check);
  response.set_degraded(check.degraded);
  response.set_estimated(check.estimated);
  response.set_unmatched(!check.matched);
}

void FillResponse(const v1::CheckRequest& request, const limiter::Check& check,
                  v1::CheckResponse& response) {
  FillStanding(check, response);
  response.set_reservation(check.reservation);
  if (!request.explain()) return;
  for (const limiter::PolicyVerdict& verdict : check.verdicts) {
    v1::PolicyVerdict& told = *response.add_policies();
    FillDecision(verdict.decision, told);
    told.set_policy(verdict.policy.data(), verdict.policy.size());
    told.set_descriptor_index(static_cast<std::uint32_t>(verdict.descriptor));
    told.set_shadow(verdict.shadow);
    told.set_estimated(verdict.estimated);
  }
}

Status AddDescriptors(const google::protobuf::RepeatedPtrField<v1::Descriptor>& descriptors,
                      Burst& burst) {
  if (descriptors.empty() || descriptors.size() > kMaxDescriptors) {
    return Error{Code::kInvalidArgument,
                 "descriptors must be 1 to " + std::to_string(kMaxDescriptors)};
  }
  for (const v1::Descriptor& descriptor : descriptors) {
    if (descriptor.entries_size() > kMaxEntries) {
      return Error{Code::kInvalidArgument,
                   "a descriptor may have at most " + std::to_string(kMaxEntries) + " entries"};
    }
    burst.AddDescriptor();
    for (const v1::Entry& entry : descriptor.entries()) burst.AddEntry(entry.key(), entry.value());
  }
  return {};
}

/// Adds the subject: a bare key or descriptors, of a CheckRequest or a ReleaseRequest.
template <typename Message>
Status AddSubject(const Message& request, limiter::Check& check, Burst& burst) {
  if (request.key().empty()) return AddDescriptors(request.descriptors(), burst);
  if (!request.descriptors().empty()) {
    return Error{Code::kInvalidArgument, "give a key or descriptors, not both"};
  }
  check.request.key = request.key();
  return {};
}

/// How long a reservation may wait to be settled.
Result<std::chrono::milliseconds> LastsOf(const v1::CheckRequest& request) {
  using store::reserve::kLongest;
  using store::reserve::kShortest;
  if (!request.has_expires_after_ms()) return store::reserve::kUsual;
  const std::chrono::milliseconds given(request.expires_after_ms());
  if (given >= kShortest && given <= kLongest) return given;
  return Error{Code::kInvalidArgument, "expires_after_ms must be " +
                                           std::to_string(kShortest.count()) + " to " +
                                           std::to_string(kLongest.count())};
}

Status AddCheck(const v1::CheckRequest& request, std::string_view default_domain, store::Op op,
                Burst& burst) {
  const std::int64_t cost = request.has_cost() ? request.cost() : 1;
  if (cost < 0) return Error{Code::kInvalidArgument, "cost must not be negative"};
  if (request.has_expires_after_ms()) {
    return Error{Code::kInvalidArgument, "expires_after_ms is only for Reserve"};
  }
  if (request.overdraw() && op != store::Op::kCharge) {
    return Error{Code::kInvalidArgument, "overdraw is only for Check and CheckBatch"};
  }
  if (request.overdraw()) op = store::Op::kOverdraw;
  limiter::Check& check =
      burst.AddCheck(request.domain().empty() ? default_domain : request.domain(), op, cost);
  return AddSubject(request, check, burst);
}

/// One check in, one answer out.
template <typename Request, typename Response>
class Unary : public DecidingMethod {
 public:
  using DecidingMethod::DecidingMethod;

  std::unique_ptr<google::protobuf::Message> NewRequest() const final {
    return std::make_unique<Request>();
  }

  Status Ask(const google::protobuf::Message& request, Burst& burst) final {
    return Add(static_cast<const Request&>(request), burst);
  }

  void Answer(const Job& job, std::span<const limiter::Check> checks, Call& call) final {
    const limiter::Check& check = checks.front();
    if (!check.status.ok()) return call.Finish(check.status.error());
    response_.Clear();
    Fill(static_cast<const Request&>(*job.request), check, response_);
    call.Send(response_);
    call.Finish(StatusCode::kOk);
  }

 private:
  virtual Status Add(const Request& request, Burst& burst) = 0;
  virtual void Fill(const Request& request, const limiter::Check& check, Response& response) = 0;

  Response response_;
};

/// Check, Peek and Refund.
class SingleCheck : public Unary<v1::CheckRequest, v1::CheckResponse> {
 public:
  SingleCheck(Decider& decider, store::Op op) : Unary(decider), op_(op) {}

 private:
  Status Add(const v1::CheckRequest& request, Burst& burst) override {
    return AddCheck(request, {}, op_, burst);
  }
  void Fill(const v1::CheckRequest& request, const limiter::Check& check,
            v1::CheckResponse& response) final {
    FillResponse(request, check, response);
  }

  const store::Op op_;
};

/// Reserve: a check whose answer says what to settle.
class Reserve final : public SingleCheck {
 public:
  explicit Reserve(Decider& decider) : SingleCheck(decider, store::Op::kCharge) {}

 private:
  Status Add(const v1::CheckRequest& request, Burst& burst) override {
    const std::int64_t cost = request.has_cost() ? request.cost() : 1;
    if (cost < 1) return Error{Code::kInvalidArgument, "cost must be at least 1"};
    if (request.overdraw()) {
      return Error{Code::kInvalidArgument, "overdraw is only for Check and CheckBatch"};
    }
    const Result<std::chrono::milliseconds> lasts = LastsOf(request);
    if (!lasts.ok()) return lasts.error();
    limiter::Check& check = burst.AddCheck(request.domain(), store::Op::kCharge, cost);
    check.reserve = *lasts;
    return AddSubject(request, check, burst);
  }
};

class Settle final : public Unary<v1::SettleRequest, v1::SettleResponse> {
 public:
  using Unary::Unary;

 private:
  Status Add(const v1::SettleRequest& request, Burst& burst) override {
    if (request.cost() < 0 || request.cost() > kMaxLimit) {
      return Error{Code::kInvalidArgument, "cost must be 0 to " + std::to_string(kMaxLimit)};
    }
    limiter::Check& check = burst.AddCheck({}, store::Op::kSettle, request.cost());
    check.settles = request.reservation();
    return {};
  }
  void Fill(const v1::SettleRequest&, const limiter::Check& check,
            v1::SettleResponse& response) override {
    response.set_settled(check.applied);
    FillStanding(check, *response.mutable_standing());
  }
};

/// CheckBatch, and CheckStream, which is many of those on one call.
class BatchCheck final : public DecidingMethod {
 public:
  BatchCheck(Decider& decider, bool stream) : DecidingMethod(decider), stream_(stream) {}

  bool single_request() const noexcept override { return !stream_; }

  void OnHalfClose(Call& call) override { FinishIfAnswered(call); }

  std::span<const std::uint32_t> parts() const noexcept override {
    static constexpr std::uint32_t kPath[] = {2, 2, 1};  // checks, their descriptors and entries
    return kPath;
  }

  std::unique_ptr<google::protobuf::Message> NewRequest() const override {
    return std::make_unique<v1::CheckBatchRequest>();
  }

  Status Ask(const google::protobuf::Message& message, Burst& burst) override {
    const auto& request = static_cast<const v1::CheckBatchRequest&>(message);
    if (request.checks_size() > kMaxBatch) {
      return Error{Code::kInvalidArgument,
                   "a batch may have at most " + std::to_string(kMaxBatch) + " checks"};
    }
    for (int i = 0; i < request.checks_size(); ++i) {
      const Status added = AddCheck(request.checks(i), request.domain(), store::Op::kCharge, burst);
      if (!added.ok()) {
        return Error{added.error().code,
                     "checks[" + std::to_string(i) + "]: " + added.error().message};
      }
    }
    return {};
  }

  void Answer(const Job& job, std::span<const limiter::Check> checks, Call& call) override {
    const auto& request = static_cast<const v1::CheckBatchRequest&>(*job.request);
    response_.Clear();
    response_.set_id(request.id());
    for (std::size_t i = 0; i < checks.size(); ++i) {
      v1::CheckResponse& response = *response_.add_responses();
      if (checks[i].status.ok()) {
        FillResponse(request.checks(static_cast<int>(i)), checks[i], response);
        continue;
      }
      const Error& error = checks[i].status.error();
      response.mutable_error()->set_code(static_cast<int>(ToStatusCode(error.code)));
      response.mutable_error()->set_message(error.message);
    }
    call.SendInOrder(job.number, response_);
    FinishIfAnswered(call);
    // If it were only cleared, it would keep the memory of the largest answer at each place.
    answered_ += response_.ByteSizeLong();
    if (answered_ < kAnsweredBeforeFreed) return;
    answered_ = 0;
    response_ = v1::CheckBatchResponse();
  }

 private:
  static void FinishIfAnswered(Call& call) {
    if (call.half_closed() && call.expected() == 0) call.Finish(StatusCode::kOk);
  }

  static constexpr std::size_t kAnsweredBeforeFreed = 256 << 10;

  const bool stream_;
  v1::CheckBatchResponse response_;
  std::size_t answered_ = 0;  // bytes since its memory was last freed
};

class Release final : public Unary<v1::ReleaseRequest, v1::ReleaseResponse> {
 public:
  using Unary::Unary;

 private:
  Status Add(const v1::ReleaseRequest& request, Burst& burst) override {
    if (request.lease() == 0 && request.leases().empty()) {
      return Error{Code::kInvalidArgument, "leases must be those that the check returned"};
    }
    limiter::Check& check = burst.AddCheck(request.domain(), store::Op::kRelease, 1);
    check.lease = request.lease();
    if (!request.leases().empty()) {
      const Status parsed = limiter::ParsePermits(request.leases(), check.permits);
      if (!parsed.ok()) {
        return Error{parsed.error().code, "leases: " + parsed.error().message};
      }
    }
    return AddSubject(request, check, burst);
  }
  void Fill(const v1::ReleaseRequest&, const limiter::Check& check,
            v1::ReleaseResponse& response) override {
    response.set_released(check.applied);
  }
};

}  // namespace

void AddWeirService(Services& services, Decider& decider) {
  const std::string prefix = "/weir.v1.Limiter/";
  services.Add(prefix + "Check", std::make_unique<SingleCheck>(decider, store::Op::kCharge));
  services.Add(prefix + "Peek", std::make_unique<SingleCheck>(decider, store::Op::kPeek));
  services.Add(prefix + "Refund", std::make_unique<SingleCheck>(decider, store::Op::kRefund));
  services.Add(prefix + "CheckBatch", std::make_unique<BatchCheck>(decider, false));
  services.Add(prefix + "CheckStream", std::make_unique<BatchCheck>(decider, true));
  services.Add(prefix + "Release", std::make_unique<Release>(decider));
  services.Add(prefix + "Reserve", std::make_unique<Reserve>(decider));
  services.Add(prefix + "Settle", std::make_unique<Settle>(decider));
}

}  // namespace weir::grpc
