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

/// Listens to channels on a connection of its own, and for ever: a connection that is lost, or
/// silent for longer than command_timeout after being asked whether it lives, is opened again.
/// What was published in between is lost; `subscribed` says when that may have happened.
///
/// Thread safety: belongs to the thread that runs `io`; callbacks run there, never inside the
/// constructor, and none after the destructor.
class Subscriber {
 public:
  struct Callbacks {
    std::function<void(std::string_view channel, std::string_view message)> message;
    /// All channels are listened to, from now on; also after each reconnection.
    std::function<void()> subscribed = {};
    /// The connection was lost, or could not be made.
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
