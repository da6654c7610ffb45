#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "net/listener.h"
#include "net/reactor.h"
#include "weir/result.h"

namespace weir::net {

struct PoolOptions {
  std::size_t reactors = 0;              ///< 0: one per core this process may use
  std::size_t max_connections = 20'000;  ///< of all doors and reactors together
  ClientBound clients = {};              ///< likewise
};

/// All reactors of the process and the threads that run them.
///
/// Thread safety: for the one thread that owns it.
class ReactorPool {
 public:
  explicit ReactorPool(PoolOptions options);
  /// Stops and joins what still runs.
  ~ReactorPool();
  ReactorPool(const ReactorPool&) = delete;
  ReactorPool& operator=(const ReactorPool&) = delete;

  std::size_t size() const noexcept { return reactors_.size(); }
  Reactor& reactor(std::size_t index) noexcept { return *reactors_[index]; }

  /// Opens `address` on every reactor; before Start. `door` must outlive the pool. Returns the
  /// endpoint with its real port. Connections wait in the kernel until Start.
  Result<Endpoint> Listen(Door& door, std::string_view address);

  void Start();
  /// Shuts down gracefully: returns when every connection has been answered and closed, or when
  /// `patience` is over and the rest has been cut off. False in the latter case.
  bool Drain(std::chrono::milliseconds patience);
  /// Ends the threads. Idempotent.
  void Stop();

 private:
  std::vector<std::unique_ptr<Reactor>> reactors_;
  std::vector<std::thread> threads_;
};

}  // namespace weir::net
