#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "drivers/redis/url.h"

namespace weir::redis {

/// Short messages between all who name the same channel of a server or cluster: SUBSCRIBE and
/// PUBLISH on connections and a thread of their own. It connects again by itself, in a cluster to
/// the next node; what was published while a listener was not connected does not reach it, and
/// `changed` tells when that was.
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

  Channel(Address address, std::string name, Callbacks callbacks);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Never blocks. A message that cannot be sent is lost.
  void Publish(std::string message);

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace weir::redis
