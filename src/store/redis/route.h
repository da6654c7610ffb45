#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/redis/command.h"
#include "drivers/redis/connection.h"
#include "drivers/redis/script.h"
#include "store/redis/names.h"
#include "store/redis/queue.h"
#include "store/redis/redis_store.h"
#include "store/store.h"
#include "weir/result.h"

namespace weir::store::redis {

/// Which calls may carry an application, and how they get to a server. A lane is what a call must
/// not leave: a connection of a single server, a slot of a cluster. Calls of one lane run in order.
///
/// Thread safety: belongs to the thread that runs the store's io_context.
class Route {
 public:
  using Lane = Queues::Lane;

  virtual ~Route() = default;

  /// Picks the lane for those applications of the next Apply that may go anywhere. Lanes that
  /// `queues` has keep their meaning; others may be forgotten.
  virtual void Turn(const Queues& queues) = 0;
  /// Nothing if the application's keys cannot be decided together.
  virtual std::optional<Lane> LaneOf(const Application& application) = 0;
  /// The positions of charges that can be decided together, group by group, in a fixed order.
  virtual std::vector<std::vector<std::uint32_t>> Apart(const Application&) const { return {}; }
  /// Which server calls of this lane go to, as far as known. Lanes with one number share a server.
  virtual std::uint32_t ServerOf(Lane lane) const = 0;
  /// The names that calls of this lane use for keys.
  virtual const Names& NamesOf(Lane lane) const = 0;
  /// As Store's.
  virtual std::string GroupOf(std::string_view) const { return {}; }
  virtual std::uint32_t PartOf(const Application&) const { return 0; }
  virtual std::optional<std::string> ProbeKey(std::uint32_t /*part*/) const { return {}; }
  /// `script` must outlive the call.
  virtual void Call(Lane lane, const weir::redis::Script& script, weir::redis::Command arguments,
                    weir::redis::Connection::Done done) = 0;
};

/// To the server or cluster of `options.url`.
Result<std::unique_ptr<Route>> MakeRoute(boost::asio::io_context& io, const Options& options);

}  // namespace weir::store::redis
