#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/postgres/params.h"
#include "drivers/postgres/rows.h"
#include "weir/result.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace weir::postgres {

struct ConnectionOptions {
  std::string url = {};  ///< postgres://user:password@host:port/database, or libpq's key=value form
  std::chrono::milliseconds connect_timeout{5000};
  /// From Send to the answer. Then the connection is closed, since nothing else can tell a slow
  /// server from a dead one.
  std::chrono::milliseconds statement_timeout{10000};
  /// After a failed attempt to connect, doubled by each that follows up to the longest, less up to
  /// half at random; statements sent meanwhile fail immediately. A lost connection is made
  /// again without delay.
  std::chrono::milliseconds reconnect_delay{200};
  std::chrono::milliseconds longest_reconnect_delay{1000};
  /// The code of errors when the server does not admit this user, or not with this password. If it
  /// is another one than kUnavailable, a missing database is kPermissionDenied.
  Code refused = Code::kUnavailable;
  /// Settings of the session, e.g. "-c jit=off"; the url's own `options` go before them.
  std::string session = {};
  /// Statements that may be under way at the same time; more are refused with kResourceExhausted.
  std::size_t max_in_flight = 4096;
};

/// The outcome of a statement. `sqlstate` is empty unless the server itself refused.
struct Answer {
  Status status;
  std::string sqlstate = {};
  Rows rows = {};
  /// The statement was not sent to the server, so it cannot have taken effect.
  bool unsent = false;
};

/// One pipelined connection to PostgreSQL that connects by itself, and again after it was lost.
///
/// Statements are sent as they are given, without waiting for earlier answers; each is a
/// transaction of its own unless it is between BEGIN and COMMIT. A caller that needs several
/// statements in one transaction must be the connection's only user meanwhile; after an error the
/// statements up to ROLLBACK fail too, as in psql. Statements are prepared on first use: their
/// texts must be few.
///
/// If the connection is lost, statements in flight fail with kUnavailable, and whether they took
/// effect is unknown. An open transaction is lost; a statement sent afterwards runs outside
/// of it, so check the answer of each statement before sending the next that depends on it.
///
/// Thread safety: belongs to the thread that runs `io`; callbacks run there, never inside Send.
/// Resolving a host name blocks that thread: prefer an address or a socket directory.
class Connection {
 public:
  using Done = std::function<void(Answer)>;

  Connection(boost::asio::io_context& io, ConnectionOptions options);
  /// Statements in flight fail with kUnavailable; their callbacks run inside.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// `sql` is one statement with parameters $1, $2, …; `done` is called once.
  void Send(std::string_view sql, Params params, Done done);

  /// A statement of a group.
  struct Query {
    std::string_view sql;
    Params params;
    Done done;
    std::chrono::milliseconds timeout{0};  ///< instead of statement_timeout
  };
  /// Sends statements that the server runs as one: after one that fails the rest are not run, and
  /// get an error. `session` is the one to use, if the group depends on a transaction that is
  /// open in it: in any other, the group fails with kUnavailable and nothing is run. 0: any.
  void SendGroup(std::vector<Query> group, std::uint64_t session = 0);
  /// The current session; changes whenever the connection is made again.
  std::uint64_t session() const noexcept;

  bool connected() const noexcept;
  std::size_t in_flight() const noexcept;

 private:
  class Session;
  std::shared_ptr<Session> session_;
};

}  // namespace weir::postgres
