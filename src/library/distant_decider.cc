// A distant store. One thread runs what a reactor of the service does: limiter, leases, guard,
// store. Callers leave their checks with it and wait; what is there when it looks goes out
// together.

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "library/backend.h"
#include "library/deciders.h"
#include "store/guard/asio_timers.h"
#include "store/guard/guarded_store.h"
#include "store/guard/prober.h"
#include "store/lease/leases.h"
#include "store/lease/leasing_store.h"

namespace weir::library {
namespace {

namespace asio = boost::asio;
using limiter::Check;

store::guard::GuardOptions GuardOptionsOf(const LimiterOptions& options,
                                          const EmbeddedSettings& settings) {
  store::guard::GuardOptions guard;
  guard.timeout = options.timeout;
  guard.breaker.failures = settings.breaker_failures;
  guard.cache.max_keys = settings.max_refusals;
  guard.quiet = true;  // a library has no voice of its own
  return guard;
}

/// Thread-safe.
class Distant final : public Decider {
 public:
  Distant(limiter::Shared& shared, const LimiterOptions& options, const EmbeddedSettings& settings)
      : shared_(shared), timeout_(options.timeout), guard_(GuardOptionsOf(options, settings)) {}

  ~Distant() override {
    if (!thread_.joinable()) return;
    GiveLeasesBack();
    io_.stop();
    thread_.join();
    prober_.reset();
    guarded_->Close();
    limiter_.reset();
  }
  Distant(const Distant&) = delete;
  Distant& operator=(const Distant&) = delete;

  Status Open(const LimiterOptions& options, const EmbeddedSettings& settings) {
    auto backend = OpenBackend({.url = options.store,
                                .connections = settings.connections,
                                .timeout = options.timeout,
                                .migrate = options.migrate,
                                .refusals = settings.max_refusals != 0,
                                .quiet = true,
                                .spread = settings.spread},
                               guard_);
    if (!backend.ok()) return backend.error();
    backend_ = std::move(*backend);
    if (options.connect_timeout.count() > 0) {
      const Status answer = AwaitAnswer(*backend_, guard_, options.connect_timeout);
      if (!answer.ok()) return Error{answer.error().code, "the store " + answer.error().message};
    }
    auto guarded =
        std::make_unique<store::guard::GuardedStore>(io_, guard_, backend_->NewStore(io_));
    guarded_ = guarded.get();
    prober_ = std::make_unique<store::guard::Prober>(io_, guard_, *guarded_);
    leases_.emplace(store::lease::LeaseOptions{});
    auto leasing = std::make_unique<store::lease::LeasingStore>(
        std::make_unique<store::guard::AsioTimers>(io_), *leases_, std::move(guarded));
    leasing_ = leasing.get();
    limiter_ = std::make_unique<limiter::PolicyLimiter>(shared_, std::move(leasing));
    thread_ = std::thread([this] { io_.run(); });
    return {};
  }

  void Decide(Check& check, const std::function<void(Check&)>& told) override {
    Waiting waiting{&check, &told, {}};
    std::future<void> decided = waiting.decided.get_future();
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      first = waiting_.empty();
      waiting_.push_back(&waiting);
    }
    // Whoever finds it empty calls the thread; the others go along.
    if (first) asio::post(io_, [this] { TakeAll(); });
    decided.wait();
  }

  Status health() const override {
    const store::guard::Health health = guard_.health();
    if (health.up && health.breaker == store::guard::BreakerState::kClosed) return {};
    return Error{Code::kUnavailable,
                 health.last_error.empty() ? "it has not been asked yet" : health.last_error};
  }

 private:
  /// A caller that waits on its own stack.
  struct Waiting {
    Check* check;
    const std::function<void(Check&)>* told;
    std::promise<void> decided;
  };
  struct Batch {
    std::vector<Check> checks;
    std::vector<Waiting*> callers;
  };

  void TakeAll() {
    auto batch = std::make_shared<Batch>();
    {
      const std::lock_guard lock(mutex_);
      batch->callers.swap(waiting_);
    }
    for (Waiting* caller : batch->callers) batch->checks.push_back(std::move(*caller->check));
    limiter_->Decide(batch->checks, [batch] {
      for (std::size_t i = 0; i < batch->checks.size(); ++i) {
        (*batch->callers[i]->told)(batch->checks[i]);
        batch->callers[i]->decided.set_value();
      }
    });
  }

  /// What was taken in advance is of use to other nodes.
  void GiveLeasesBack() {
    bool leased = false;
    for (const policy::Policy& one : shared_.policies.Current()->policies()) {
      leased = leased || one.lease.has_value();
    }
    if (!leased) return;
    asio::post(io_, [this] { leasing_->Drain(); });
    std::this_thread::sleep_for(timeout_);  // as long as an answer may take
  }

  limiter::Shared& shared_;
  const std::chrono::milliseconds timeout_;
  store::guard::Guard guard_;
  std::unique_ptr<Backend> backend_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::optional<store::lease::Leases> leases_;
  store::guard::GuardedStore* guarded_ = nullptr;  // the limiter's
  store::lease::LeasingStore* leasing_ = nullptr;  // the limiter's
  std::unique_ptr<store::guard::Prober> prober_;
  std::unique_ptr<limiter::PolicyLimiter> limiter_;
  std::mutex mutex_;
  std::vector<Waiting*> waiting_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Decider>> DistantDecider(limiter::Shared& shared,
                                                const LimiterOptions& options,
                                                const EmbeddedSettings& settings) {
  auto decider = std::make_unique<Distant>(shared, options, settings);
  if (Status opened = decider->Open(options, settings); !opened.ok()) return opened.error();
  return std::unique_ptr<Decider>(std::move(decider));
}

}  // namespace weir::library
