#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <unordered_map>

#include "network.h"
#include "scenario.h"
#include "store/guard/guarded_store.h"
#include "store/guard/prober.h"
#include "store/lease/leasing_store.h"
#include "virtual_time.h"

namespace weir::simulation {

/// The store of a region: the real leasing store, which lends, with its own guard and a link to the
/// distant home store. Not thread-safe.
class Region final : public Upstream {
 public:
  Region(Events& events, Server& home, const Scenario& scenario, std::uint64_t seed,
         Server::OnCharged on_charged);
  ~Region() override;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  void Apply(std::span<store::Application> batch, store::Done done) override;

  /// A client of this process makes a check. `admitted` runs if it passed.
  void Check(std::int64_t cost, std::function<void()> admitted);
  /// Such a client refunds an admitted check; returns how many permits can be spent again.
  std::int64_t Refund(std::int64_t cost);

  Link& link() noexcept { return link_; }
  Pulse& pulse() noexcept { return *pulse_; }
  /// Permits that nodes have leased here.
  std::uint64_t lent() const;
  /// Describes the first of them that a node could have spent after the home store's term.
  const std::optional<std::string>& violation() const noexcept { return violation_; }
  /// Ends the process and starts another one: everything held counts as spent.
  void Crash();

 private:
  struct Own;
  struct Process;

  std::unique_ptr<Process> Start();
  void Ask(store::Op op, std::int64_t cost, std::function<void()> applied);
  void Note(const store::Application& application);
  void CheckLent(const store::Application& application);

  Events& events_;
  Server& home_;
  const Scenario& scenario_;
  const Server::OnCharged on_charged_;
  std::mt19937_64 random_;
  NodeClock clock_;
  std::shared_ptr<Pulse> pulse_;
  Link link_;
  std::unique_ptr<Process> process_;
  std::uint64_t refunded_ = 0;                        // by this process
  std::uint64_t lent_ = 0;                            // by earlier processes
  std::unordered_map<std::uint64_t, Nanos> charged_;  // when the home store made each grant
  std::optional<std::string> violation_;
};

}  // namespace weir::simulation
