#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/redis/command.h"
#include "drivers/redis/connection.h"
#include "drivers/redis/masters.h"
#include "drivers/redis/script.h"
#include "drivers/redis/url.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace weir::redis {

/// A Redis Cluster: finds out which master has which slot and sends calls there, over a few
/// connections to each. Redirections (MOVED, ASK) are followed; a cluster that cannot answer now
/// (CLUSTERDOWN, TRYAGAIN, a master that cannot be reached) is tried again until command_timeout is
/// over. Only calls that certainly had no effect are repeated: one that was lost on its way fails
/// with kUnavailable.
///
/// Thread safety: as Connection.
class Cluster {
 public:
  /// `options.endpoint` is not used. `seeds`: some of the nodes, at least one.
  /// `masters` numbers them; null: it creates its own.
  Cluster(boost::asio::io_context& io, ConnectionOptions options, std::vector<Endpoint> seeds,
          std::size_t connections, std::shared_ptr<Masters> masters = nullptr);
  /// Calls in flight fail with kUnavailable; their callbacks run inside, or later on `io`.
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// Calls the script, whose keys are all of `slot`, as Script::Call does.
  void Call(std::uint16_t slot, const Script& script, Command arguments, Connection::Done done);

  /// Nodes that it has connections to, or tries to reach.
  std::size_t nodes() const noexcept;
  /// The number of the master that is believed to have the slot; 0: unknown.
  std::uint32_t MasterOf(std::uint16_t slot) const noexcept;

 private:
  class Nodes;
  std::shared_ptr<Nodes> nodes_;
};

}  // namespace weir::redis
