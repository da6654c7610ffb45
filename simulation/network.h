#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oracle.h"
#include "scenario.h"
#include "store/memory/memory_store.h"
#include "store/store.h"
#include "virtual_time.h"

namespace weir::simulation {

/// Whether it is a bucket of the policy under test.
bool IsHot(std::string_view key);

/// What calls arrive at. Not thread-safe.
class Upstream {
 public:
  virtual ~Upstream() = default;
  /// `done` runs when all are filled, immediately or later.
  virtual void Apply(std::span<store::Application> batch, store::Done done) = 0;
};

/// The one store that all nodes share: the real memory store on the true time. Not thread-safe.
class Server final : public Upstream {
 public:
  /// Receives what each charge of an exact check was granted, at the time it was charged. `lease`
  /// is the name of a concurrency quota's permit.
  using OnCharged =
      std::function<void(std::string_view key, std::int64_t cost, std::int64_t lease)>;

  /// Receives the name of each permit that was released.
  using OnReleased = std::function<void(std::int64_t lease)>;

  Server(const Events& events, OnCharged on_charged, OnReleased on_released);

  void Apply(std::span<store::Application> batch, store::Done done) override;
  /// Saves the state, and later restores it, as a failover to a lagging replica does.
  void Save();
  void LoseSince();
  /// Permits of hot keys that were charged in between.
  std::int64_t lost() const noexcept { return lost_; }
  std::uint64_t calls() const noexcept { return calls_; }
  /// Permits of hot keys that were granted in advance.
  std::int64_t granted() const noexcept { return granted_; }
  const Ledger& ledger() const noexcept { return ledger_; }

 private:
  void Note(const store::Application& application);

  StoreClock clock_;
  Engine engine_;
  store::memory::MemoryStore store_;
  const OnCharged on_charged_;
  const OnReleased on_released_;
  std::uint64_t calls_ = 0;
  std::string saved_;
  std::int64_t since_saved_ = 0;
  std::int64_t lost_ = 0;
  std::int64_t granted_ = 0;
  Ledger ledger_;
};

/// One node's link to the server, and its current faults.
struct Link {
  Nanos cut_until = 0;
};

/// What a node sees of the server: calls take time, and arrive late, out of order or not at all.
///
/// Thread safety: as Store.
class RemoteStore final : public store::Store {
 public:
  /// Everything must outlive it. `link` and `random` are the node's.
  RemoteStore(Events& events, Upstream& server, const Scenario& scenario, Link& link,
              std::mt19937_64& random, std::shared_ptr<const Pulse> pulse);
  ~RemoteStore() override;
  RemoteStore(const RemoteStore&) = delete;
  RemoteStore& operator=(const RemoteStore&) = delete;

  void Apply(std::span<store::Application> batch, store::Done done) override;

 private:
  struct Message;

  Nanos Delay();
  bool Lost();
  void Answer(const std::shared_ptr<Message>& message);

  Events& events_;
  Upstream& server_;
  const Scenario& scenario_;
  Link& link_;
  std::mt19937_64& random_;
  const std::shared_ptr<const Pulse> pulse_;
  std::shared_ptr<bool> alive_;
};

}  // namespace weir::simulation
