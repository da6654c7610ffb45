#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "protocol/grpc/method.h"

namespace weir::grpc {

class Session;

/// grpc.health.v1.Health of one reactor: Check and Watch. All services live and die together here,
/// so there is one status for each name that is served, and for the empty one.
///
/// Thread safety: belongs to one reactor.
class Health {
 public:
  /// `names` are the services served, e.g. "weir.v1.Limiter". Must outlive the services' sessions.
  explicit Health(std::vector<std::string> names);

  void AddTo(Services& services);

  /// Tells every watcher if this is a change.
  void SetServing(bool serving);
  bool serving() const noexcept { return serving_; }

 private:
  class CheckMethod;
  class WatchMethod;
  struct Watcher {
    std::shared_ptr<Session*> session;
    std::int32_t call = 0;
  };

  bool Knows(const std::string& name) const noexcept;

  std::vector<std::string> names_;
  bool serving_ = true;
  std::vector<Watcher> watchers_;  // of services that are known: the status of others never changes
};

}  // namespace weir::grpc
