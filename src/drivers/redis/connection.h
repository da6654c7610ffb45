#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "drivers/redis/command.h"
#include "drivers/redis/reply.h"
#include "drivers/redis/url.h"
#include "weir/result.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace weir::redis {

struct ConnectionOptions {
  Endpoint endpoint = {};
  std::string server = "redis";  ///< what errors call it
  std::string user = {};
  std::string password = {};
  std::uint32_t database = 0;
  TlsOptions tls = {};
  std::chrono::milliseconds connect_timeout{2000};
  /// From Send to the answer, connecting included. Then the connection is closed, since nothing
  /// else tells a slow server from a dead one.
  std::chrono::milliseconds command_timeout{1000};
  /// After a failure, commands fail immediately for this long; doubled with each further failure up
  /// to the longest, and cut by a random share so that clients do not return together.
  std::chrono::milliseconds reconnect_delay{20};
  std::chrono::milliseconds max_reconnect_delay{400};
  /// Commands that may be under way at the same time; more are refused with kResourceExhausted.
  std::size_t max_in_flight = 65536;

  /// The options for one server of `address`.
  static ConnectionOptions Of(const Address& address, std::size_t endpoint = 0);
};

/// The outcome of a command. An error reply sets both: `status` says what it means, `reply`
/// has the server's words.
struct Answer {
  Status status;
  Reply reply = {};
  /// False if the command certainly never left, so that sending it elsewhere repeats nothing.
  bool sent = true;
};

/// One pipelined connection to a Redis server that connects by itself, and again after it was lost.
///
/// Commands are sent as they are given, without waiting for earlier answers, and are
/// answered in order. If the connection is lost, commands in flight fail with kUnavailable, and
/// whether they took effect is unknown.
///
/// Thread safety: belongs to the thread that runs `io`; callbacks run there, never inside Send.
class Connection {
 public:
  using Done = std::function<void(Answer)>;

  Connection(boost::asio::io_context& io, ConnectionOptions options);
  /// Commands in flight fail with kUnavailable; their callbacks run inside.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// `done` is called once.
  void Send(Command command, Done done);

  bool connected() const noexcept;
  std::size_t in_flight() const noexcept;
  const Endpoint& endpoint() const noexcept;

 private:
  class Session;
  std::shared_ptr<Session> session_;
};

}  // namespace weir::redis
