#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "algorithm/lease.h"
#include "network.h"
#include "scenario.h"
#include "store/lease/holding.h"
#include "virtual_time.h"

namespace weir::simulation {

/// A region's store: it leases permits from the home store, far away, and its nodes lease them from
/// it in turn. A permit must be spent within the term that the home store granted, so a node gets
/// only permits that outlast its own, shorter term. Whatever cannot be met by what is held is
/// refused: a region never waits for the other side of the world.
///
/// Real are the steps, the holding and the home store; the rest of a region is not built yet.
/// Not thread-safe.
class Region final : public Upstream {
 public:
  Region(Events& events, Server& home, const Scenario& scenario, std::uint64_t seed,
         Server::OnCharged on_charged);
  ~Region() override;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  void Apply(std::span<store::Application> batch) override;

  Link& link() noexcept { return link_; }
  Pulse& pulse() noexcept { return *pulse_; }
  /// All that is held counts as spent.
  void Crash();

 private:
  struct Ask;
  using Holdings = std::unordered_map<std::string, store::lease::Holding>;

  void Decide(store::Application& application, Nanos now);
  void Charge(const store::Charge& charge, store::lease::Holding& holding,
              store::Application& application, Nanos now);
  void Lease(const store::Charge& charge, store::lease::Holding& holding,
             store::Application& application, Nanos now);
  store::lease::Holding& Watch(std::string_view key, std::int64_t cost, Nanos now);
  void AskHome(const std::string& key, store::Op op, std::int64_t cost, Nanos at);
  void OnAnswer(const std::shared_ptr<Ask>& ask);
  void Tick();

  Events& events_;
  const Scenario& scenario_;
  const Server::OnCharged on_charged_;
  const algorithm::LeaseTerms terms_;
  std::mt19937_64 random_;
  NodeClock clock_;
  std::shared_ptr<Pulse> pulse_;
  Link link_;
  RemoteStore home_;
  Holdings holdings_;
  std::uint64_t grants_ = 0;
  std::uint64_t life_ = 0;  // what was asked for in an earlier one is not answered in this
};

}  // namespace weir::simulation
