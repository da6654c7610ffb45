#pragma once

// Where the limits of a service are: in this process, in a store that many share, or in several of
// them. Everything that differs between these for `weir serve` and `weir proxy` is here.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/admin.h"
#include "config/config.h"
#include "library/distant_store.h"
#include "library/store_routes.h"
#include "net/reactor_pool.h"
#include "policy/policy_set.h"
#include "store/held_here.h"
#include "store/lease/leasing_store.h"
#include "store/memory/journal.h"
#include "store/memory/key_list.h"
#include "store/memory/snapshot.h"
#include "store/memory/sweeper.h"
#include "store/route/routing_store.h"
#include "store/store.h"
#include "telemetry/metrics.h"
#include "trial/key_reader.h"
#include "weir/engine.h"
#include "weir/result.h"

namespace weir::app {

/// The store behind the limiters of all reactors.
///
/// Thread safety: health, Collect and the listing of keys from any thread; the rest is for the
/// thread that created it.
class Stores {
 public:
  /// `snapshot` is the file of the memory store's state. `catalog` may determine where keys
  /// live. `leasing`: as the catalog compiles leased policies. All others must outlive this.
  static Result<std::unique_ptr<Stores>> Open(const config::Config& config,
                                              const std::string& snapshot, net::ReactorPool& pool,
                                              policy::Catalog& catalog, bool leasing);
  ~Stores();

  /// For the limiter of reactor `index`; call it once for each.
  std::unique_ptr<store::Store> Take(std::size_t index);

  /// Returns what the reactors hold of leased limits; from then on every check asks the store.
  /// Call it while the reactors run.
  void Drain();

  /// Answers everything that still waits, and releases the reactors; saves the memory
  /// store. Call it when the reactors have ended and before they are destroyed.
  void Close();

  /// Its health; nothing if it cannot fail.
  std::optional<admin::StoreHealth> health() const;
  void Collect(telemetry::TextWriter& out) const;
  /// On a reactor's thread, where `done` runs, too, but never before this returns.
  void ListKeys(store::KeyQuery query, KeyReader::Done done);
  /// What the reactors hold of leased buckets; see store::FindHeld. Null if nothing can be leased.
  store::FindHeld FindHeld();
  /// Nothing if that is unknown without counting them.
  std::optional<std::size_t> CountKeys() const {
    return only_memory() ? std::optional(engine_->size()) : std::nullopt;
  }

 private:
  Stores(const config::Config& config, net::ReactorPool& pool) : config_(config), pool_(pool) {}
  bool only_memory() const noexcept { return distant_.empty(); }
  Result<store::KeyPage> ReadKeys(const store::KeyQuery& query) const;
  Status OpenMemory(const std::string& snapshot);
  Status OpenJournal(const std::string& snapshot);
  void OpenReactors(const policy::LivePolicies& policies);
  std::size_t CurrentReactor() const;
  std::unique_ptr<store::Store> MemoryStoreFor(std::size_t reactor);
  std::unique_ptr<store::Store> MemberStoreFor(std::size_t reactor, std::size_t member);

  const config::Config& config_;
  net::ReactorPool& pool_;
  std::optional<Engine> engine_;
  std::unique_ptr<store::memory::Journal> journal_;
  std::unique_ptr<store::memory::Sweeper> sweeper_;
  std::unique_ptr<store::memory::SnapshotKeeper> snapshots_;
  std::vector<std::unique_ptr<library::DistantStore>> distant_;
  /// The servers in the order of library::MembersOf; null: the one in this process.
  std::vector<library::DistantStore*> members_;
  store::route::RoutingCounts routing_;
  std::vector<std::unique_ptr<library::LiveRoutes>> routes_;  // one per reactor
  std::optional<store::lease::Leases> leases_;
  std::vector<std::unique_ptr<store::lease::LeasingStore>> leasing_;
  std::unique_ptr<store::memory::KeyList> memory_keys_;  // for the thread of:
  std::optional<KeyReader> key_reader_;
};

/// Likely mistakes: policies that no request can match, and those that the store which
/// config.store names cannot charge together, though they may meet.
std::vector<std::string> Misfits(const config::Config& config, const policy::PolicySet& policies);
/// Logs them.
void WarnOfMisfits(const config::Config& config, const policy::PolicySet& policies);
/// Not a mistake, but good to know beforehand: policies whose leases may lose permits for long, and
/// those that a Redis Cluster charges one after the other, because only several descriptors of one
/// request match them.
std::vector<std::string> Remarks(const config::Config& config, const policy::PolicySet& policies);

}  // namespace weir::app
