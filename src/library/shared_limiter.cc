#include "weir/shared_limiter.h"

#include <future>
#include <utility>

#include "base/error.h"
#include "library/shared_core.h"
#include "store/reserve/reservation.h"

namespace weir {
namespace {

using library::Job;
using store::Op;

Status Validate(const SharedLimiterOptions& options) {
  constexpr std::size_t kMaxPrefix = 64;
  if (options.timeout.count() < 1) return Invalid("timeout: must be at least 1 ms");
  if (options.connect_timeout.count() < 0) return Invalid("connect_timeout: must not be negative");
  if (options.connections > 1000) return Invalid("connections: more than 1000");
  if (options.max_waiting == 0) return Invalid("max_waiting: must be at least 1");
  if (options.prefix.size() > kMaxPrefix) return Invalid("prefix: longer than 64 bytes");
  return {};
}

/// Converts a job's answer into what its caller receives.
template <typename Answer>
std::function<void(Job&)> Telling(std::function<void(Result<Answer>)> done,
                                  Answer (*answer)(Job&)) {
  return [done = std::move(done), answer](Job& job) {
    if (!job.application.status.ok()) return done(job.application.status.error());
    done(answer(job));
  };
}

Decision FirstOf(Job& job) { return job.decisions.front(); }
bool AppliedOf(Job& job) { return job.application.applied; }
SharedReservation ReservedOf(Job& job) {
  SharedReservation told{job.decisions[1], {}};
  // The lease of a token bucket names the charge, not permits.
  if (job.application.charges[1].quota->algorithm() != Algorithm::kConcurrency) {
    told.decision.lease = 0;
  }
  if (!job.application.applied) return told;
  store::reserve::Note(job.reservation->groups.front(), job.reservation->lasts, job.decisions);
  told.reservation = store::reserve::Write(*job.reservation);
  return told;
}
SharedSettlement SettledOf(Job& job) { return {job.application.applied, job.decisions[1]}; }
SharedDecisions AllOf(Job& job) { return {job.application.applied, std::move(job.decisions)}; }

}  // namespace

SharedLimiter::SharedLimiter(std::unique_ptr<Core> core) noexcept : core_(std::move(core)) {}
SharedLimiter::~SharedLimiter() = default;
SharedLimiter::SharedLimiter(SharedLimiter&&) noexcept = default;
SharedLimiter& SharedLimiter::operator=(SharedLimiter&&) noexcept = default;

Result<SharedLimiter> SharedLimiter::Open(const std::string& url, SharedLimiterOptions options) {
  if (Status valid = Validate(options); !valid.ok()) return valid.error();
  auto core = std::make_unique<Core>(options);
  if (Status opened = core->Open(url); !opened.ok()) return opened.error();
  return SharedLimiter(std::move(core));
}

void SharedLimiter::TryAcquireAsync(std::string_view key, const Quota& quota, std::int64_t cost,
                                    OnDecision done) {
  core_->Ask(Op::kCharge, key, quota, cost, 0, Telling<Decision>(std::move(done), FirstOf));
}

void SharedLimiter::TryAcquireAllAsync(std::span<const Ask> asks, OnDecisions done) {
  core_->AskAll(asks, Telling<SharedDecisions>(std::move(done), AllOf));
}

void SharedLimiter::PeekAsync(std::string_view key, const Quota& quota, std::int64_t cost,
                              OnDecision done) {
  core_->Ask(Op::kPeek, key, quota, cost, 0, Telling<Decision>(std::move(done), FirstOf));
}

void SharedLimiter::OverdrawAsync(std::string_view key, const Quota& quota, std::int64_t cost,
                                  OnDecision done) {
  core_->Ask(Op::kOverdraw, key, quota, cost, 0, Telling<Decision>(std::move(done), FirstOf));
}

void SharedLimiter::RefundAsync(std::string_view key, const Quota& quota, std::int64_t cost,
                                OnDecision done) {
  core_->Ask(Op::kRefund, key, quota, cost, 0, Telling<Decision>(std::move(done), FirstOf));
}

void SharedLimiter::ReleaseAsync(std::string_view key, const Quota& quota, std::int64_t lease,
                                 OnRelease done) {
  core_->Ask(Op::kRelease, key, quota, 1, lease, Telling<bool>(std::move(done), AppliedOf));
}

void SharedLimiter::ReserveAsync(std::string_view key, const Quota& quota, std::int64_t estimate,
                                 std::chrono::milliseconds lasts, OnReservation done) {
  core_->Reserve(key, quota, estimate, lasts,
                 Telling<SharedReservation>(std::move(done), ReservedOf));
}

void SharedLimiter::SettleAsync(std::string_view reservation, std::int64_t cost,
                                OnSettlement done) {
  core_->Settle(reservation, cost, Telling<SharedSettlement>(std::move(done), SettledOf));
}

void SharedLimiter::ResetAsync(std::string_view key, OnReset done) {
  // All states of the key are deleted; the quota only shapes an answer that is not used.
  core_->Ask(Op::kReset, key, *Quota::TokenBucket(1, 1), 0, 0,
             [done = std::move(done)](Job& job) { done(job.application.status); });
}

namespace {

/// Waits for the value passed to the callback that `start` gets.
template <typename Answer, typename Start>
Answer Await(bool own_thread, Start start) {
  if (own_thread) {
    return Error{Code::kFailedPrecondition, "a callback must not wait for its own limiter"};
  }
  // Shared with the callback, which may still be running when this thread has its answer.
  const auto promise = std::make_shared<std::promise<Answer>>();
  std::future<Answer> answer = promise->get_future();
  start([promise](Answer told) { promise->set_value(std::move(told)); });
  return answer.get();
}

}  // namespace

Result<Decision> SharedLimiter::TryAcquire(std::string_view key, const Quota& quota,
                                           std::int64_t cost) {
  return Await<Result<Decision>>(core_->on_own_thread(), [&](OnDecision done) {
    TryAcquireAsync(key, quota, cost, std::move(done));
  });
}

Result<SharedDecisions> SharedLimiter::TryAcquireAll(std::span<const Ask> asks) {
  return Await<Result<SharedDecisions>>(
      core_->on_own_thread(), [&](OnDecisions done) { TryAcquireAllAsync(asks, std::move(done)); });
}

Result<Decision> SharedLimiter::Peek(std::string_view key, const Quota& quota, std::int64_t cost) {
  return Await<Result<Decision>>(core_->on_own_thread(), [&](OnDecision done) {
    PeekAsync(key, quota, cost, std::move(done));
  });
}

Result<Decision> SharedLimiter::Overdraw(std::string_view key, const Quota& quota,
                                         std::int64_t cost) {
  return Await<Result<Decision>>(core_->on_own_thread(), [&](OnDecision done) {
    OverdrawAsync(key, quota, cost, std::move(done));
  });
}

Result<Decision> SharedLimiter::Refund(std::string_view key, const Quota& quota,
                                       std::int64_t cost) {
  return Await<Result<Decision>>(core_->on_own_thread(), [&](OnDecision done) {
    RefundAsync(key, quota, cost, std::move(done));
  });
}

Result<bool> SharedLimiter::Release(std::string_view key, const Quota& quota, std::int64_t lease) {
  return Await<Result<bool>>(core_->on_own_thread(), [&](OnRelease done) {
    ReleaseAsync(key, quota, lease, std::move(done));
  });
}

Result<SharedReservation> SharedLimiter::Reserve(std::string_view key, const Quota& quota,
                                                 std::int64_t estimate,
                                                 std::chrono::milliseconds lasts) {
  return Await<Result<SharedReservation>>(core_->on_own_thread(), [&](OnReservation done) {
    ReserveAsync(key, quota, estimate, lasts, std::move(done));
  });
}

Result<SharedSettlement> SharedLimiter::Settle(std::string_view reservation, std::int64_t cost) {
  return Await<Result<SharedSettlement>>(core_->on_own_thread(), [&](OnSettlement done) {
    SettleAsync(reservation, cost, std::move(done));
  });
}

Status SharedLimiter::Reset(std::string_view key) {
  return Await<Status>(core_->on_own_thread(),
                       [&](OnReset done) { ResetAsync(key, std::move(done)); });
}

Status SharedLimiter::health() const { return core_->health(); }

}  // namespace weir
