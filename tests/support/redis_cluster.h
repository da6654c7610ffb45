#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/certificates.h"
#include "support/cutting_proxy.h"
#include "support/redis_server.h"

namespace weir::test {

struct RedisClusterOptions {
  std::size_t masters = 3;  // RedisCluster::kMasters
  /// Without replicas, the slots of a master that is down are down, and only those.
  bool replicas = true;
  /// Clients are sent to each node through a proxy that can cut their connections.
  bool proxied = false;
  std::string password = {};
  /// With TLS, also between the nodes. Must outlive it.
  Certificates* certificates = nullptr;
};

/// A private, real Redis Cluster on the loopback interface: masters that share the slots evenly,
/// and a replica for each. Starting it takes a few seconds. A master that does not
/// answer for a second is replaced by its replica.
///
/// Throws std::runtime_error if it does not become ready. As thread-safe as ChildProcess.
class RedisCluster {
 public:
  /// Unless the options say otherwise.
  static constexpr std::size_t kMasters = 3;

  explicit RedisCluster(RedisClusterOptions options = {});

  /// redis+cluster://… or rediss+cluster://… with the first nodes, the password and the authority.
  std::string url() const;
  RedisServer& node(std::size_t index) { return *nodes_[index]; }
  std::size_t size() const noexcept { return nodes_.size(); }

  /// Requires `proxied`.
  CuttingProxy& proxy(std::size_t index) { return *proxies_[index]; }

  /// Waits for a key that matches the pattern of KEYS, and returns its slot.
  std::uint16_t SlotOfKeyLike(const std::string& pattern);
  /// The index of the node that is currently the master of a slot.
  std::size_t MasterOf(std::uint16_t slot);
  /// An orderly failover: the master's replica takes over without losing a write.
  void Failover(std::uint16_t slot);
  /// Moves an empty slot to the master `to`. Until the move ends, keys that do not exist (yet) are
  /// served by the new master.
  void BeginMove(std::uint16_t slot, std::size_t to);
  void EndMove(std::uint16_t slot, std::size_t to);
  /// Waits until every running node reports the cluster state as ok.
  void AwaitOk();

 private:
  std::string IdOf(std::size_t index);
  RedisOptions NodeOptions() const;

  const RedisClusterOptions options_;
  std::vector<std::unique_ptr<RedisServer>> nodes_;
  std::vector<std::unique_ptr<CuttingProxy>> proxies_;
};

}  // namespace weir::test
