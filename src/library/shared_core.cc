#include "library/shared_core.h"

#include <utility>

#include "base/error.h"

namespace weir {
namespace {

using library::Job;
using store::Op;

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
  guard.quiet = true;  // a library does not log: errors are returned
  return guard;
}

}  // namespace

SharedLimiter::Core::Core(const SharedLimiterOptions& options)
    : options_(options), guard_(GuardOptionsOf(options)) {}

SharedLimiter::Core::~Core() {
  if (!thread_.running()) return;
  thread_.Halt();
  closing_ = std::this_thread::get_id();
  prober_.reset();
  store_->Close();
  // Jobs that were posted but not yet run find the store closed.
  thread_.io().restart();
  thread_.io().poll();
}

Status SharedLimiter::Core::Open(const std::string& url) {
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
      return Error{answer.error().code, "the store: " + answer.error().message};
    }
  }
  store_ = std::make_unique<store::guard::GuardedStore>(thread_.io(), guard_,
                                                        backend_->NewStore(thread_.io()));
  prober_ = std::make_unique<store::guard::Prober>(thread_.io(), guard_, *store_);
  thread_.Start();
  return {};
}

void SharedLimiter::Core::Ask(Op op, std::string_view key, const Quota& quota, std::int64_t cost,
                              std::int64_t lease, JobDone done) {
  auto job = std::make_unique<Job>();
  job->application.op = op;
  job->application.lease = lease;
  job->done = std::move(done);
  if (Status valid = ValidateKey(key); !valid.ok()) return Refuse(*job, valid.error());
  if (cost < 0) return Refuse(*job, Invalid("cost: must not be negative"));
  job->Add(options_.prefix, key, quota, cost);
  Send(std::move(job));
}

void SharedLimiter::Core::AskAll(std::span<const weir::Ask> asks, JobDone done) {
  auto job = std::make_unique<Job>();
  job->done = std::move(done);
  if (asks.empty() || asks.size() > kMaxAsks)
    return Refuse(*job, Invalid("asks: must be 1 to 256"));
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

void SharedLimiter::Core::AskAs(const std::function<Status(Job&)>& fill, JobDone done) {
  auto job = std::make_unique<Job>();
  job->done = std::move(done);
  if (Status filled = fill(*job); !filled.ok()) return Refuse(*job, filled.error());
  Send(std::move(job));
}

void SharedLimiter::Core::Reserve(std::string_view key, const Quota& quota, std::int64_t cost,
                                  std::chrono::milliseconds lasts, JobDone done) {
  const auto fill = [&](Job& job) -> Status {
    if (Status valid = ValidateKey(key); !valid.ok()) return valid;
    return job.Reserve(options_.prefix, key, quota, cost, lasts);
  };
  AskAs(fill, std::move(done));
}

void SharedLimiter::Core::Settle(std::string_view text, std::int64_t cost, JobDone done) {
  AskAs([&](Job& job) { return job.Settle(text, cost); }, std::move(done));
}

bool SharedLimiter::Core::on_own_thread() const noexcept {
  const std::thread::id here = std::this_thread::get_id();
  return here == thread_.id() || here == closing_.load();
}

Status SharedLimiter::Core::health() const {
  const store::guard::Health health = guard_.health();
  // In a cluster, each master in use must answer.
  if (health.up && health.breaker == store::guard::BreakerState::kClosed) return {};
  return Error{Code::kUnavailable,
               health.last_error.empty() ? "not contacted yet" : health.last_error};
}

void SharedLimiter::Core::Refuse(Job& job, Error error) {
  job.application.status = std::move(error);
  job.done(job);
}

void SharedLimiter::Core::Send(std::unique_ptr<Job> job) {
  if (waiting_.fetch_add(1) >= options_.max_waiting) {
    --waiting_;
    return Refuse(*job, {Code::kResourceExhausted, "too many calls are waiting for the store"});
  }
  job->Seal();
  thread_.Post([this, job = std::move(job)]() mutable { Apply(job.release()); });
}

void SharedLimiter::Core::Apply(Job* job) {
  store_->Apply({&job->application, 1}, [this, job] {
    const std::unique_ptr<Job> owned(job);
    --waiting_;
    owned->done(*owned);
  });
}

}  // namespace weir
