#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace weir::mariadb {

/// Short messages between all who name the same channel of a database. There is no NOTIFY here, so
/// messages are rows of a small table that everybody reads five times a second, on a connection and
/// a thread of its own. What was published while a listener was not connected does not reach it,
/// and `changed` tells when that was. The table is made if it is not there; rows are deleted after
/// a minute.
///
/// Thread-safe. Callbacks run on the channel's thread, and none after the destructor.
class Channel {
 public:
  struct Callbacks {
    /// What anybody published, this object included.
    std::function<void(std::string_view message)> message;
    /// True: everything that is published from now on arrives. False: no longer.
    std::function<void(bool up)> changed;
  };

  /// `name` is made of letters, digits and '_', 64 at most.
  Channel(std::string url, std::string name, Callbacks callbacks);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Never blocks. While there is no connection, messages wait for one (the latest few thousand).
  /// At most 8,000 bytes.
  void Publish(std::string message);

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace weir::mariadb
