// Distant stores. One thread runs what a reactor of the service does: limiter, leases, routes if
// there are several, and a guard in front of each store. Callers queue their checks for it and
// wait; it sends everything in the queue together.

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "library/deciders.h"
#include "library/distant_store.h"
#include "library/store_routes.h"
#include "store/guard/asio_timers.h"
#include "store/lease/leases.h"
#include "store/lease/leasing_store.h"
#include "store/memory/memory_store.h"
#include "store/memory/sweeper.h"
#include "store/route/routing_store.h"
#include "weir/engine.h"

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
  guard.quiet = true;  // a library does not write to its program's log
  return guard;
}

DistantStoreOptions OptionsOf(const StoreMember& member, const LimiterOptions& options,
                              const EmbeddedSettings& settings) {
  return {.name = member.name,
          .backend = {.url = member.url,
                      .connections = settings.connections,
                      .timeout = options.timeout,
                      .migrate = options.migrate,
                      .refusals = settings.max_refusals != 0,
                      .quiet = true},
          .guard = GuardOptionsOf(options, settings),
          .patience = options.connect_timeout};
}

/// Thread-safe.
class Distant final : public Decider {
 public:
  Distant(limiter::Shared& shared, const LimiterOptions& options, const EmbeddedSettings& settings)
      : shared_(shared), timeout_(options.timeout), routes_(settings.places, shared.policies) {}

  ~Distant() override {
    if (!thread_.joinable()) return;
    GiveLeasesBack();
    io_.stop();
    thread_.join();
    for (const auto& server : servers_) server->Close();
    limiter_.reset();
  }
  Distant(const Distant&) = delete;
  Distant& operator=(const Distant&) = delete;

  Status Open(policy::Catalog& catalog, const LimiterOptions& options,
              const EmbeddedSettings& settings) {
    std::vector<std::unique_ptr<store::Store>> members;
    for (const StoreMember& member : MembersOf(settings.places)) {
      auto opened = OpenMember(member, catalog, options, settings);
      if (!opened.ok()) {
        const std::string what = member.name.empty() ? "store: " : "stores." + member.name + ": ";
        return Error{opened.error().code, what + opened.error().message};
      }
      members.push_back(std::move(*opened));
    }
    std::unique_ptr<store::Store> all = std::move(members.front());
    if (!settings.places.stores.empty()) {
      members.front() = std::move(all);
      const auto current = [this]() -> const store::route::Routes& { return routes_.Current(); };
      all = std::make_unique<store::route::RoutingStore>(std::move(members), current, routing_,
                                                         LevelPause(options.timeout));
    }
    leases_.emplace(store::lease::LeaseOptions{});
    auto leasing = std::make_unique<store::lease::LeasingStore>(
        std::make_unique<store::guard::AsioTimers>(io_), *leases_, std::move(all));
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
    // The caller that finds the queue empty wakes the thread, which takes later checks along.
    if (first) asio::post(io_, [this] { TakeAll(); });
    decided.wait();
  }

  Status health() const override {
    for (const auto& server : servers_) {
      const store::guard::Health health = server->guard().health();
      if (health.up && health.breaker == store::guard::BreakerState::kClosed) continue;
      const std::string what = server->name().empty() ? "" : server->name() + ": ";
      return Error{Code::kUnavailable,
                   what + (health.last_error.empty() ? "not contacted yet" : health.last_error)};
    }
    return {};
  }

 private:
  /// A caller that waits, on its own stack.
  struct Waiting {
    Check* check;
    const std::function<void(Check&)>* told;
    std::promise<void> decided;
  };
  struct Batch {
    std::vector<Check> checks;
    std::vector<Waiting*> callers;
  };

  /// A store for the limiter's thread.
  Result<std::unique_ptr<store::Store>> OpenMember(const StoreMember& member,
                                                   policy::Catalog& catalog,
                                                   const LimiterOptions& options,
                                                   const EmbeddedSettings& settings) {
    if (member.url == "memory:") {
      engine_.emplace(*Quota::TokenBucket(1, 1), EngineOptions{.max_keys = options.max_keys,
                                                               .keys = KeyStorage::kText,
                                                               .clock = nullptr,
                                                               .on_evict = {},
                                                               .track_changes = false});
      sweeper_.emplace(*engine_, kSweepEvery);
      return std::unique_ptr<store::Store>(std::make_unique<store::memory::MemoryStore>(*engine_));
    }
    const std::array<asio::io_context*, 1> reactors = {&io_};
    auto opened = DistantStore::Open(OptionsOf(member, options, settings), reactors, catalog);
    if (!opened.ok()) return opened.error();
    servers_.push_back(std::move(*opened));
    if (const Status& answered = servers_.back()->answered(); !answered.ok()) {
      servers_.back()->Close();
      return Error{answered.error().code, "the store: " + answered.error().message};
    }
    return std::unique_ptr<store::Store>(std::make_unique<Borrowed>(servers_.back()->store(0)));
  }

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

  /// Returns permits taken in advance, for other nodes to use.
  void GiveLeasesBack() {
    bool leased = false;
    for (const policy::Policy& one : shared_.policies.Current()->policies()) {
      leased = leased || one.lease.has_value();
    }
    if (!leased) return;
    asio::post(io_, [this] { leasing_->Drain(); });
    std::this_thread::sleep_for(timeout_);  // the longest time that an answer may take
  }

  limiter::Shared& shared_;
  const std::chrono::milliseconds timeout_;
  std::optional<Engine> engine_;  // if one of the stores is in this process
  std::optional<store::memory::Sweeper> sweeper_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::vector<std::unique_ptr<DistantStore>> servers_;
  store::route::RoutingCounts routing_;
  LiveRoutes routes_;
  std::optional<store::lease::Leases> leases_;
  store::lease::LeasingStore* leasing_ = nullptr;  // the limiter's
  std::unique_ptr<limiter::PolicyLimiter> limiter_;
  std::mutex mutex_;
  std::vector<Waiting*> waiting_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Decider>> DistantDecider(limiter::Shared& shared, policy::Catalog& catalog,
                                                const LimiterOptions& options,
                                                const EmbeddedSettings& settings) {
  auto decider = std::make_unique<Distant>(shared, options, settings);
  if (Status opened = decider->Open(catalog, options, settings); !opened.ok())
    return opened.error();
  return std::unique_ptr<Decider>(std::move(decider));
}

}  // namespace weir::library
