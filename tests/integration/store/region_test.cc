// A home store, two regions that lease from it over sockets, and two nodes in each: real endpoints,
// real connections, real time. One region ends abruptly and is restarted. What all nodes
// admitted together is what the original quota allows.

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "algorithm/lease.h"
#include "fault/stores/lease_history.h"
#include "limiter/limiter.h"
#include "net/reactor_pool.h"
#include "service/resp_door.h"
#include "store/guard/asio_timers.h"
#include "store/guard/guarded_store.h"
#include "store/guard/prober.h"
#include "store/lease/leasing_store.h"
#include "store/memory/memory_store.h"
#include "store/remote/remote_store.h"
#include "support/check_load.h"
#include "support/ports.h"
#include "support/wait.h"

namespace weir::store {
namespace {

using namespace std::chrono_literals;

std::string Url(std::uint16_t port) { return "weir://127.0.0.1:" + std::to_string(port); }

/// Passes applications to a store, as the limiter of a service does.
class StoreLimiter final : public limiter::Limiter {
 public:
  explicit StoreLimiter(std::unique_ptr<Store> store) : store_(std::move(store)) {}
  void Decide(std::span<limiter::Check>, Done done) override { done(); }
  void Apply(std::span<Application> batch, Done done) override {
    store_->Apply(batch, std::move(done));
  }

 private:
  std::unique_ptr<Store> store_;
};

/// A process's path to another Weir: connections, a guard, leases.
class Way {
 public:
  Way(boost::asio::io_context& io, const std::string& url, bool lends)
      : guard_(Quiet()), leases_({.lends = lends}) {
    guarded_ =
        std::make_unique<guard::GuardedStore>(io, guard_, *remote::MakeStore(io, {.url = url}));
    prober_ = std::make_unique<guard::Prober>(io, guard_, *guarded_);
    leasing_ = std::make_unique<lease::LeasingStore>(std::make_unique<guard::AsioTimers>(io),
                                                     leases_, std::make_unique<Lender>(*guarded_));
  }
  ~Way() {
    prober_.reset();
    guarded_->Close();
    leasing_.reset();
  }
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;

  Store& store() { return *leasing_; }
  lease::LeaseMetrics& metrics() { return *leases_.metrics().front(); }

 private:
  static guard::GuardOptions Quiet() {
    guard::GuardOptions options;
    options.timeout = 300ms;
    options.quiet = true;
    return options;
  }

  class Lender final : public Store {
   public:
    explicit Lender(Store& store) : store_(store) {}
    void Apply(std::span<Application> batch, Done done) override {
      store_.Apply(batch, std::move(done));
    }

   private:
    Store& store_;
  };

  guard::Guard guard_;
  lease::Leases leases_;
  std::unique_ptr<guard::GuardedStore> guarded_;
  std::unique_ptr<guard::Prober> prober_;
  std::unique_ptr<lease::LeasingStore> leasing_;
};

/// A RESP endpoint on one reactor.
class Door {
 public:
  /// `make` runs on the reactor's thread.
  using Make = std::function<std::unique_ptr<limiter::Limiter>(boost::asio::io_context&)>;
  Door(std::uint16_t port, Make make)
      : door_(
            1,
            [this, make](net::Reactor& reactor) -> limiter::Limiter& {
              limiter_ = make(reactor.context());
              return *limiter_;
            },
            Everybody()),
        pool_(net::PoolOptions{.reactors = 1, .max_connections = 100}) {
    EXPECT_TRUE(pool_.Listen(door_, "127.0.0.1:" + std::to_string(port)).ok());
    pool_.Start();
  }
  ~Door() {
    pool_.Stop();
    limiter_.reset();
  }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

 private:
  static service::RespOptions Everybody() {
    service::RespOptions options;
    options.hooks.stores = [](std::string_view, std::string_view) { return true; };
    return options;
  }

  std::unique_ptr<limiter::Limiter> limiter_;
  service::RespDoor door_;
  net::ReactorPool pool_;
};

class Region {
 public:
  Region(std::uint16_t port, std::string home)
      : port_(port),
        home_(std::move(home)),
        lent_(std::make_shared<std::atomic<std::uint64_t>>(0)) {
    Start();
  }
  void Start() {
    door_ = std::make_unique<Door>(port_, [this](boost::asio::io_context& io) {
      auto limiter = std::make_unique<WayLimiter>(io, home_, lent_);
      return limiter;
    });
  }
  void End() { door_.reset(); }
  std::uint64_t lent() const { return lent_->load(); }

 private:
  class WayLimiter final : public limiter::Limiter {
   public:
    WayLimiter(boost::asio::io_context& io, const std::string& home,
               std::shared_ptr<std::atomic<std::uint64_t>> lent)
        : way_(io, home, true), lent_(std::move(lent)) {}
    void Decide(std::span<limiter::Check>, Done done) override { done(); }
    void Apply(std::span<Application> batch, Done done) override {
      way_.store().Apply(batch, std::move(done));
      lent_->store(way_.metrics().lent.value());
    }

   private:
    Way way_;
    std::shared_ptr<std::atomic<std::uint64_t>> lent_;
  };

  const std::uint16_t port_;
  const std::string home_;
  std::shared_ptr<std::atomic<std::uint64_t>> lent_;
  std::unique_ptr<Door> door_;
};

/// Checks the key repeatedly, on its own thread.
class Node {
 public:
  Node(std::string region, const algorithm::LeaseTerms& terms)
      : terms_(terms), thread_([this, url = std::move(region)] { Run(url); }) {}
  ~Node() { End(); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void End() {
    ending_ = true;
    if (thread_.joinable()) thread_.join();
  }
  const std::vector<test::CheckRecord>& admitted() const { return admitted_; }  // after End

 private:
  void Run(const std::string& url) {
    boost::asio::io_context io(1);
    Way way(io, url, false);
    const Charge charge{"api/hot|", 1, &terms_.quota};
    const algorithm::LeaseTerms* const one = &terms_;
    while (!ending_) {
      Decision decision;
      Application application;
      application.charges = {&charge, 1};
      application.decisions = {&decision, 1};
      application.terms = {&one, 1};
      bool done = false;
      test::CheckRecord record;
      record.sent = test::WallNanos();
      way.store().Apply({&application, 1}, [&done] { done = true; });
      do {
        io.restart();
        io.run_one_for(1ms);
      } while (!done);
      record.answered = test::WallNanos();
      record.allowed = application.status.ok() && application.applied;
      if (record.allowed) admitted_.push_back(record);
    }
  }

  const algorithm::LeaseTerms terms_;
  std::atomic<bool> ending_{false};
  std::vector<test::CheckRecord> admitted_;
  std::thread thread_;
};

TEST(Region, NodesTogetherAdmitWhatTheQuotaAsWrittenAllows) {
  // It fills in 5 s, so regions hold permits for 250 ms and nodes spend them within 62.5 ms.
  const Quota quota = *Quota::TokenBucket(400, 80);
  const algorithm::LeaseTerms terms = *algorithm::RegionTermsFor(quota, 2s);
  ASSERT_EQ(terms.region, std::chrono::nanoseconds(250ms).count());
  Engine engine(*Quota::TokenBucket(1, 1), EngineOptions{.max_keys = 1000});
  const std::uint16_t home_port = test::FreePort();
  Door home(home_port, [&engine](boost::asio::io_context&) {
    return std::make_unique<StoreLimiter>(std::make_unique<memory::MemoryStore>(engine));
  });
  std::vector<std::unique_ptr<Region>> regions;
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < 2; ++i) {
    const std::uint16_t port = test::FreePort();
    regions.push_back(std::make_unique<Region>(port, Url(home_port)));
    for (int k = 0; k < 2; ++k) nodes.push_back(std::make_unique<Node>(Url(port), terms));
  }
  std::this_thread::sleep_for(1500ms);
  for (const auto& region : regions) {
    EXPECT_TRUE(test::WaitUntil([&] { return region->lent() > 0; })) << "nothing was lent";
  }
  regions[0]->End();
  std::this_thread::sleep_for(300ms);
  regions[0]->Start();
  std::this_thread::sleep_for(2500ms);
  std::vector<test::CheckRecord> all;
  for (const auto& node : nodes) {
    node->End();
    all.insert(all.end(), node->admitted().begin(), node->admitted().end());
  }
  EXPECT_EQ(test::Unexplained(quota, all), std::nullopt);
  EXPECT_NE(test::Unexplained(*Quota::TokenBucket(200, 40), all), std::nullopt)
      << "the load did not press the limit: " << all.size() << " admitted";
}

}  // namespace
}  // namespace weir::store
