#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/redis/connection.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace weir::redis {

/// Listens to channels on a connection of its own, indefinitely: a connection that is lost, or
/// silent for longer than command_timeout after a PING, is opened again.
/// Messages published in between are lost; `subscribed` says when that may have happened.
///
/// Thread safety: belongs to the thread that runs `io`; callbacks run there, never inside the
/// constructor, and none after the destructor.
class Subscriber {
 public:
  struct Callbacks {
    std::function<void(std::string_view channel, std::string_view message)> message;
    /// All channels are subscribed from now on; also called after each reconnection.
    std::function<void()> subscribed = {};
    /// The connection was lost, or the attempt failed.
    std::function<void(const Error&)> lost = {};
  };

  /// `channels`: at least one.
  Subscriber(boost::asio::io_context& io, ConnectionOptions options,
             std::vector<std::string> channels, Callbacks callbacks);
  ~Subscriber();
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  bool subscribed() const noexcept;

 private:
  class Session;
  std::shared_ptr<Session> session_;
};

}  // namespace weir::redis
