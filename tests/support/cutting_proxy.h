#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "support/wait.h"

namespace weir::test {

/// A TCP proxy on a free loopback port that can cut connections half-way through a reply, or hold
/// all traffic for a while. It counts round trips.
///
/// Thread-safe.
class CuttingProxy {
 public:
  explicit CuttingProxy(std::uint16_t target);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  std::uint16_t port() const noexcept { return port_; }

  /// How often a client has sent first or after its server did: the number of round trips for
  /// protocols in which the server only replies, whatever they are called there.
  int round_trips() const noexcept { return round_trips_; }

  /// Forwards half of the next reply on each open connection, then closes both sides.
  /// Waits for the first such reply; false if none arrives within a while.
  [[nodiscard]] bool CutReplies() {
    const int before = cut_;
    ++cuts_wanted_;
    return WaitUntil([&] { return cut_ > before; });
  }

  /// While held, nothing passes in either direction; afterwards all of it does, late. TCP behaves
  /// like this when a network loses every packet for a while.
  void Hold(bool held) { held_ = held; }

 private:
  void Accept();
  void Serve(int client);

  const std::uint16_t target_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> held_{false};
  std::atomic<int> cuts_wanted_{0};
  std::atomic<int> cut_{0};
  std::atomic<int> round_trips_{0};
  std::vector<std::thread> threads_;  // for connections; the acceptor is separate
  std::thread acceptor_;
};

}  // namespace weir::test
