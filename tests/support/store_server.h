#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace weir::test {

/// A real server for `weir serve --store`, of any kind, and the faults that it can be given.
/// Everything acknowledged survives Kill and Start. As thread-safe as ChildProcess.
class StoreServer {
 public:
  /// `kind` is postgres, mariadb, mysql, mysql8, redis or redis_cluster. Throws
  /// std::runtime_error if it does not start.
  static std::unique_ptr<StoreServer> Make(std::string_view kind);
  virtual ~StoreServer() = default;

  virtual std::string url() const = 0;
  /// SIGKILL; for a cluster, to the first node.
  virtual void Kill() = 0;
  virtual void Start() = 0;
  /// SIGSTOP and SIGCONT; for a cluster, to all nodes.
  virtual void Pause() = 0;
  virtual void Resume() = 0;
};

}  // namespace weir::test
