#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/linearizability.h"

namespace weir::test {

/// One answered check of a load.
struct LoadRecord {
  CheckRecord check;
  bool degraded = false;
  int status = 0;  ///< 0: the connection broke

  std::chrono::nanoseconds taken() const {
    return std::chrono::nanoseconds(check.answered - check.sent);
  }
};

/// Clients that send the same check repeatedly to `weir serve` processes, each client to one of
/// them, until Stop. A client whose connection breaks opens another.
///
/// Thread safety: for the thread that made it.
class CheckLoad {
 public:
  /// `body` of POST /v1/check. `pause`: between an answer and the next check of a client.
  CheckLoad(std::vector<std::uint16_t> ports, std::size_t clients, std::string body,
            std::chrono::microseconds pause = {});
  ~CheckLoad();

  /// Waits until every client has received `each` more answers; false if one does not get them.
  [[nodiscard]] bool AwaitAnswers(std::size_t each) const;
  /// Ends the clients and returns their records.
  std::vector<LoadRecord> Stop();

 private:
  void Run(std::size_t client);

  const std::vector<std::uint16_t> ports_;
  const std::string body_;
  const std::chrono::microseconds pause_;
  std::atomic<bool> stopping_{false};
  std::vector<std::vector<LoadRecord>> records_;
  std::vector<std::atomic<std::size_t>> answers_;  // count per client
  std::vector<std::thread> threads_;
};

/// Nanoseconds since the epoch by the system clock, which servers on this machine use as well.
std::int64_t WallNanos();

}  // namespace weir::test
