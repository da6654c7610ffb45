#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace weir {

/// Short messages among all users of the same channel of a server, on its own connections and
/// thread. It reconnects automatically; messages published while a listener was disconnected do
/// not reach it, and `changed` reports when.
///
/// Thread-safe. Callbacks run on the channel's thread, and none after the destructor.
class Channel {
 public:
  struct Callbacks {
    /// A message that another object published; with some servers also one of this object's own.
    std::function<void(std::string_view message)> message;
    /// True: every message published from now on arrives. False: no longer.
    std::function<void(bool up)> changed;
    /// True: does not log why it cannot be opened.
    bool quiet = false;
  };

  Channel() = default;
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Never blocks. While there is no connection, messages may be queued for one or lost. At most
  /// 7,999 bytes, without a zero byte.
  virtual void Publish(std::string message) = 0;
};

}  // namespace weir
