#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "weir/result.h"

namespace weir::store::redis {

struct StateWatchOptions {
  std::string url = {};
  std::string prefix = "weir:";  ///< of the keys of the limits
  std::chrono::milliseconds timeout{1000};
  std::chrono::milliseconds interval{5000};
};

/// Notices that a Redis has lost data and goes on as if nothing had happened: restarted without
/// persistence, emptied, failed over to a replica that is empty or behind. It keeps a number in the
/// server, in a cluster one in each master, and increments it every few seconds. The number grows
/// unless data was lost; for a server that is new to this process there is nothing to compare with.
///
/// Thread-safe. It has its own thread and connections, so that no check waits for it.
class StateWatch {
 public:
  /// Both run on its thread. `failed`: with the first error other than an unreachable server.
  struct Callbacks {
    std::function<void()> lost;
    std::function<void(const Error&)> failed;
  };

  static Result<std::unique_ptr<StateWatch>> Open(const StateWatchOptions& options,
                                                  Callbacks callbacks);
  ~StateWatch();

 private:
  class Core;
  explicit StateWatch(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace weir::store::redis
