#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace weir::postgres {

/// Short messages between all who name the same channel of a database: LISTEN and NOTIFY on a
/// connection and a thread of its own. It connects again by itself; what was published while a
/// listener was not connected does not reach it, and `changed` tells when that was.
///
/// Thread-safe. Callbacks run on the channel's thread, and none after the destructor.
class Channel {
 public:
  struct Callbacks {
    /// What others published; not what this object did.
    std::function<void(std::string_view message)> message;
    /// True: everything that is published from now on arrives. False: no longer.
    std::function<void(bool up)> changed;
  };

  /// `name` is made of letters, digits and '_'.
  Channel(std::string url, std::string name, Callbacks callbacks);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Never blocks. While there is no connection, messages wait for one (the latest few thousand).
  /// At most 7,999 bytes, without a zero byte.
  void Publish(std::string message);

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace weir::postgres
