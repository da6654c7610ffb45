#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace weir {

/// Short messages between all that use the same channel of a server, on its own connections and
/// thread. It reconnects automatically; what was published while a listener was disconnected does
/// not reach it, and `changed` says when.
///
/// Thread-safe. Callbacks run on the channel's thread, and none after the destructor.
class Channel {
 public:
  struct Callbacks {
    /// What others published; of some servers also what this object did.
    std::function<void(std::string_view message)> message;
    /// True: everything that is published from now on arrives. False: no longer.
    std::function<void(bool up)> changed;
    /// True: it is not logged why it does not open.
    bool quiet = false;
  };

  Channel() = default;
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Never blocks. While there is no connection, messages may wait for one or be lost. At most
  /// 7,999 bytes, without a zero byte.
  virtual void Publish(std::string message) = 0;
};

}  // namespace weir
