#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "protocol/grpc/method.h"

namespace weir::grpc {

class Session;

/// grpc.health.v1.Health of one reactor: Check and Watch. All services share one state here,
/// so there is one status for each name that is served, and for the empty one.
///
/// Thread safety: belongs to one reactor.
class Health {
 public:
  /// A Watch has no time limit and needs no key, so their number is bounded: on this
  /// reactor, and on one connection.
  static constexpr std::size_t kMaxWatchers = 10'000;
  static constexpr std::size_t kMaxWatchersOfOne = 16;

  /// `names` are the services served, e.g. "weir.v1.Limiter". Must outlive the services' sessions.
  explicit Health(std::vector<std::string> names);

  void AddTo(Services& services);

  /// Notifies every watcher if this is a change.
  void SetServing(bool serving);
  bool serving() const noexcept { return serving_; }

 private:
  class CheckMethod;
  class WatchMethod;
  using Watcher = std::pair<std::shared_ptr<Session*>, std::int32_t>;

  bool Knows(const std::string& name) const noexcept;
  bool HasRoomFor(const std::shared_ptr<Session*>& session) const;

  std::vector<std::string> names_;
  bool serving_ = true;
  std::map<Watcher, bool> watchers_;  // whether the service is known: else its status is fixed
};

}  // namespace weir::grpc
