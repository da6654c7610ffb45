// How it works: one thread runs the guarded store (deadline, breaker, remembered refusals), as a
// reactor of the service does. A call becomes a Job that is posted to that thread; what is posted
// while the store is busy goes out together. A call that waits is one with a callback that wakes
// it.

#include "weir/shared_limiter.h"

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>
#include <utility>

#include "library/backend.h"
#include "library/job.h"
#include "store/guard/guarded_store.h"
#include "store/guard/prober.h"
#include "store/reserve/reservation.h"

namespace weir {
namespace {

namespace asio = boost::asio;
using library::Job;
using store::Op;

Error Invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

Status Validate(const SharedLimiterOptions& options) {
  constexpr std::size_t kMaxPrefix = 64;
  if (options.timeout.count() < 1) return Invalid("timeout: must be at least 1 ms");
  if (options.connect_timeout.count() < 0) return Invalid("connect_timeout: must not be negative");
  if (options.connections > 1000) return Invalid("connections: more than 1000");
  if (options.max_waiting == 0) return Invalid("max_waiting: must be at least 1");
  if (options.prefix.size() > kMaxPrefix) return Invalid("prefix: longer than 64 bytes");
  return {};
}

Status ValidateKey(std::string_view key) {
  if (key.empty()) return Invalid("key: is empty");
  if (key.size() > SharedLimiter::kMaxKeyBytes) return Invalid("key: longer than 4000 bytes");
  return {};
}

store::guard::GuardOptions GuardOptionsOf(const SharedLimiterOptions& options) {
  store::guard::GuardOptions guard;
  guard.timeout = options.timeout;
  guard.max_waiting = options.max_waiting;
  guard.cache.max_keys = options.max_refusals;
  guard.quiet = true;  // a library has no voice of its own: what goes wrong is returned
  return guard;
}

/// Turns what a job was answered into what its caller hears.
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
  if (!job.application.applied) return told;
  store::reserve::Note(job.reservation->groups.front(), job.reservation->lasts, job.decisions);
  told.reservation = store::reserve::Write(*job.reservation);
  return told;
}
SharedSettlement SettledOf(Job& job) { return {job.application.applied, job.decisions[1]}; }
SharedDecisions AllOf(Job& job) { return {job.application.applied, std::move(job.decisions)}; }

}  // namespace

/// Thread safety: as SharedLimiter.
class SharedLimiter::Core {
 public:
  explicit Core(const SharedLimiterOptions& options)
      : options_(options), guard_(GuardOptionsOf(options)) {}

  ~Core() {
    if (!thread_.joinable()) return;
    io_.stop();
    thread_.join();
    closing_ = std::this_thread::get_id();
    prober_.reset();
    store_->Close();
    // What was posted and not yet seen finds the store closed.
    io_.restart();
    io_.poll();
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  Status Open(const std::string& url) {
    auto backend = library::OpenBackend({.url = url,
                                         .connections = options_.connections,
                                         .timeout = options_.timeout,
                                         .migrate = options_.migrate,
                                         .refusals = options_.max_refusals != 0,
                                         .quiet = true},
                                        guard_);
    if (!backend.ok()) return backend.error();
    backend_ = std::move(*backend);
    if (options_.connect_timeout.count() > 0) {
      const Status answer = library::AwaitAnswer(*backend_, guard_, options_.connect_timeout);
      if (!answer.ok()) {
        return Error{answer.error().code, "the store " + answer.error().message};
      }
    }
    store_ = std::make_unique<store::guard::GuardedStore>(io_, guard_, backend_->NewStore(io_));
    prober_ = std::make_unique<store::guard::Prober>(io_, guard_, *store_);
    thread_ = std::thread([this] { io_.run(); });
    return {};
  }

  /// One key's call.
  void Ask(Op op, std::string_view key, const Quota& quota, std::int64_t cost, std::int64_t lease,
           std::function<void(Job&)> done) {
    auto job = std::make_unique<Job>();
    job->application.op = op;
    job->application.lease = lease;
    job->done = std::move(done);
    if (Status valid = ValidateKey(key); !valid.ok()) return Refuse(*job, valid.error());
    if (cost < 0) return Refuse(*job, Invalid("cost: must not be negative"));
    job->Add(options_.prefix, key, quota, cost);
    Send(std::move(job));
  }

  void AskAll(std::span<const weir::Ask> asks, std::function<void(Job&)> done) {
    auto job = std::make_unique<Job>();
    job->done = std::move(done);
    if (asks.empty() || asks.size() > kMaxAsks) return Refuse(*job, Invalid("asks: not 1 to 256"));
    for (std::size_t i = 0; i < asks.size(); ++i) {
      const std::string where = "asks[" + std::to_string(i) + "].";
      if (asks[i].quota == nullptr) return Refuse(*job, Invalid(where + "quota: is missing"));
      if (Status valid = ValidateKey(asks[i].key); !valid.ok()) {
        return Refuse(*job, Invalid(where + valid.error().message));
      }
      if (asks[i].cost < 0) return Refuse(*job, Invalid(where + "cost: must not be negative"));
      job->Add(options_.prefix, asks[i].key, *asks[i].quota, asks[i].cost);
    }
    Send(std::move(job));
  }

  /// Sends what `fill` makes of a job, unless it says that something is wrong.
  void AskAs(const std::function<Status(Job&)>& fill, std::function<void(Job&)> done) {
    auto job = std::make_unique<Job>();
    job->done = std::move(done);
    if (Status filled = fill(*job); !filled.ok()) return Refuse(*job, filled.error());
    Send(std::move(job));
  }

  void Reserve(std::string_view key, const Quota& quota, std::int64_t cost,
               std::chrono::milliseconds lasts, std::function<void(Job&)> done) {
    const auto fill = [&](Job& job) -> Status {
      if (Status valid = ValidateKey(key); !valid.ok()) return valid;
      return job.Reserve(options_.prefix, key, quota, cost, lasts);
    };
    AskAs(fill, std::move(done));
  }

  void Settle(std::string_view text, std::int64_t cost, std::function<void(Job&)> done) {
    AskAs([&](Job& job) { return job.Settle(text, cost); }, std::move(done));
  }

  /// Whether waiting here would be waiting for this very thread.
  bool on_own_thread() const noexcept {
    const std::thread::id here = std::this_thread::get_id();
    return here == thread_.get_id() || here == closing_.load();
  }

  Status health() const {
    const store::guard::Health health = guard_.health();
    // Of a cluster, each master that is asked must answer.
    if (health.up && health.breaker == store::guard::BreakerState::kClosed) return {};
    return Error{Code::kUnavailable,
                 health.last_error.empty() ? "it has not been asked yet" : health.last_error};
  }

 private:
  static void Refuse(Job& job, Error error) {
    job.application.status = std::move(error);
    job.done(job);
  }

  void Send(std::unique_ptr<Job> job) {
    if (waiting_.fetch_add(1) >= options_.max_waiting) {
      --waiting_;
      return Refuse(*job, {Code::kResourceExhausted, "too many calls wait for the store"});
    }
    job->Seal();
    asio::post(io_, [this, job = std::move(job)]() mutable { Apply(job.release()); });
  }

  void Apply(Job* job) {
    store_->Apply({&job->application, 1}, [this, job] {
      const std::unique_ptr<Job> owned(job);
      --waiting_;
      owned->done(*owned);
    });
  }

  const SharedLimiterOptions options_;
  store::guard::Guard guard_;
  std::unique_ptr<library::Backend> backend_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::unique_ptr<store::guard::GuardedStore> store_;
  std::unique_ptr<store::guard::Prober> prober_;
  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::thread::id> closing_{};
  std::thread thread_;
};

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
  // All states of the key go; the quota only shapes an answer that nobody asked for.
  core_->Ask(Op::kReset, key, *Quota::TokenBucket(1, 1), 0, 0,
             [done = std::move(done)](Job& job) { done(job.application.status); });
}

namespace {

/// Waits for what `start` is told.
template <typename Answer, typename Start>
Answer Await(bool own_thread, Start start) {
  if (own_thread) {
    return Error{Code::kFailedPrecondition, "a callback must not wait for the limiter it is of"};
  }
  // Shared with the callback: it may still be leaving when this thread has its answer.
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
