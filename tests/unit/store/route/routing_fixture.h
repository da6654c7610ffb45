#pragma once

// Servers for the tests of a RoutingStore, and a store in front of them.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/memory/memory_store.h"
#include "store/route/routing_store.h"

namespace weir::store::route {

/// One server: the memory store, which can be shut off, or hold answers.
class Server final : public Store {
 public:
  struct Door {
    bool shut = false;
    bool slow = false;
    bool nameless = false;  ///< does not report when it charged
    bool grouped = false;   ///< nor can report it for keys whose last letters differ
    std::vector<std::function<void()>> kept;
    std::vector<Op> asked;
  };
  Server(Engine& engine, Door& door) : inner_(engine), door_(door) {}
  ~Server() override {
    for (auto& answer : std::exchange(door_.kept, {})) answer();
  }
  void Apply(std::span<Application> batch, Done done) override {
    for (Application& application : batch) door_.asked.push_back(application.op);
    if (!door_.slow || door_.shut) return Answer(batch, std::move(done));
    door_.kept.emplace_back([this, batch, done = std::move(done)] { Answer(batch, done); });
  }
  std::string GroupOf(std::string_view key) const override {
    return door_.grouped ? std::string(key.substr(key.size() - 1)) : std::string();
  }

 private:
  bool Crosses(const Application& application) const {
    for (const Charge& charge : application.charges) {
      if (GroupOf(charge.key) != GroupOf(application.charges[0].key)) return true;
    }
    return false;
  }
  void Answer(std::span<Application> batch, Done done) {
    if (!door_.shut) {
      return inner_.Apply(batch, [this, batch, done = std::move(done)] {
        for (Application& application : batch) {
          if (door_.nameless || Crosses(application)) application.at = 0;
        }
        done();
      });
    }
    for (Application& application : batch) application.status = Error{Code::kUnavailable, "shut"};
    done();
  }

  memory::MemoryStore inner_;
  Door& door_;
};

class RoutingStoreTest : public testing::Test {
 protected:
  static constexpr Nanos kStart = Nanos{1'700'000'000} * 1'000'000'000;
  static constexpr std::size_t kServers = 3;

  RoutingStoreTest() {
    Route({.stores = {{0}, {1}, {2}}, .policies = {{"api/hot", 1}, {"api/warm", 2}}});
  }

  /// A store for one node; the servers are shared.
  std::unique_ptr<RoutingStore> MakeStore(std::optional<Routes>& routes) {
    std::vector<std::unique_ptr<Store>> members;
    for (std::size_t i = 0; i < kServers; ++i) {
      members.push_back(std::make_unique<Server>(engines_[i], doors_[i]));
    }
    return std::make_unique<RoutingStore>(
        std::move(members), [&routes]() -> const Routes& { return *routes; }, counts_,
        std::chrono::seconds(1));
  }
  void Route(Routes::Options options) { routes_.emplace(std::move(options)); }
  void Moving(std::uint32_t share, std::uint32_t done) {
    Route({.stores = {{0}, {1}}, .move = Move{0, 1, share, done, {}}});
  }

  /// Applies one application; returns whether it was applied. decisions_ has the rest.
  bool Apply(Op op, std::vector<Charge> charges, std::int64_t lease = 0, Store* at = nullptr) {
    decisions_.assign(charges.size(), {});
    Application application;
    application.op = op;
    application.charges = charges;
    application.lease = lease;
    application.decisions = decisions_;
    bool answered = false;
    (at == nullptr ? *store_ : *at).Apply({&application, 1}, [&answered] { answered = true; });
    EXPECT_TRUE(answered);
    status_ = application.status;
    granted_ = application.granted;
    return application.status.ok() && application.applied;
  }
  bool Charge1(std::string_view key, const Quota& quota, std::int64_t cost = 1) {
    return Apply(Op::kCharge, {{key, cost, &quota}});
  }
  std::int64_t LeftAt(std::size_t server, std::string_view key, const Quota& quota) {
    return engines_[server].Peek(key, quota, 0).remaining;
  }

  ManualClock clock_{kStart};
  std::array<Engine, kServers> engines_{MakeEngine(), MakeEngine(), MakeEngine()};
  std::array<Server::Door, kServers> doors_;
  RoutingCounts counts_;
  std::optional<Routes> routes_;
  std::vector<Decision> decisions_;
  Status status_;
  std::int64_t granted_ = 0;
  const Quota minute_ = *Quota::SlidingLog(10, std::chrono::minutes(1));
  const Quota bucket_ = *Quota::TokenBucket(10, 1);
  const Quota flight_ = *Quota::Concurrency(2, std::chrono::seconds(10));
  std::unique_ptr<RoutingStore> store_ = MakeStore(routes_);

 private:
  Engine MakeEngine() { return Engine(*Quota::TokenBucket(1, 1), EngineOptions{.clock = &clock_}); }
};

}  // namespace weir::store::route
