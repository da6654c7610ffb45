#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace weir::test {

/// A real server that `weir serve --store` can use, whichever it is, and what can befall it.
/// Everything acknowledged survives Kill and Start. As thread-safe as ChildProcess.
class StoreServer {
 public:
  /// `kind` is postgres, mariadb, mysql, mysql8, redis or redis_cluster. Throws
  /// std::runtime_error if it does not start.
  static std::unique_ptr<StoreServer> Make(std::string_view kind);
  virtual ~StoreServer() = default;

  virtual std::string url() const = 0;
  /// SIGKILL; of a cluster, the first node.
  virtual void Kill() = 0;
  virtual void Start() = 0;
  /// SIGSTOP and SIGCONT; of a cluster, all nodes.
  virtual void Pause() = 0;
  virtual void Resume() = 0;
};

}  // namespace weir::test
