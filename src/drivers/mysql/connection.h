#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/mysql/server_facts.h"
#include "weir/result.h"

struct st_mysql;
struct st_mysql_res;

namespace weir::mysql {

struct Endpoint;
struct Target;

/// Which of the two servers a connection leads to. Their session settings differ.
enum class Dialect { kMariadb, kMysql };

/// How long the server lets a session block others; whole seconds, at least 1.
struct SessionLimits {
  std::chrono::seconds lock_wait{1};
  std::chrono::seconds statement{1};  ///< MySQL limits only reads
  /// A transaction whose client is idle for this long is rolled back, with its locks.
  std::chrono::seconds idle_transaction{1};
};

struct ConnectionOptions {
  std::string url = {};  ///< see url.h
  /// Counted in whole seconds, rounded up: the client library has no finer unit.
  std::chrono::milliseconds connect_timeout{1000};
  std::chrono::milliseconds statement_timeout{1000};
  /// After a failed attempt to connect, doubled by each that follows up to the longest, less up to
  /// half at random; meanwhile statements fail immediately. A lost connection is made again
  /// without delay.
  std::chrono::milliseconds reconnect_delay{50};
  std::chrono::milliseconds longest_reconnect_delay{400};
  SessionLimits limits = {};
};

/// The rows that a statement returned, read one after the other.
///
/// Not thread-safe. Views live until the next call of Next.
class Rows {
 public:
  Rows() = default;
  explicit Rows(st_mysql_res* result) : result_(result) {}

  bool Next();
  std::string_view Text(unsigned column) const noexcept;  ///< NULL reads as empty
  std::int64_t Int(unsigned column) const noexcept;       ///< anything but a number reads as 0

 private:
  struct Free {
    void operator()(st_mysql_res* result) const noexcept;
  };
  std::unique_ptr<st_mysql_res, Free> result_;
  char** row_ = nullptr;
  unsigned long* lengths_ = nullptr;  // the library's type
};

/// The outcome of statements. `error` is the server's number or the client library's (2000 to
/// 2999); 0 if there was none.
struct Answer {
  Status status;
  unsigned error = 0;
  std::vector<Rows> results = {};  ///< one for each statement that was run
  std::uint64_t affected = 0;      ///< rows that the last statement touched
};

/// One blocking connection to MariaDB or MySQL that connects by itself, and again after it was
/// lost. Its sessions autocommit, read committed rows (so rows are locked and not the
/// gaps between them: new keys do not wait for each other) and have their times in UTC.
///
/// Thread safety: belongs to one thread at a time; Abort may be called from any.
class Connection {
 public:
  explicit Connection(ConnectionOptions options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Runs statements separated by ';' in one round trip; after one that fails the rest are not run.
  /// `session`, if not 0, is the one that they depend on, since a transaction is open in it: if it
  /// has been lost, nothing is run.
  Answer Run(std::string_view sql, std::uint64_t session = 0);

  /// Connects unless it is connected.
  Answer Ready();

  /// Statements for the beginning and the ends of a transaction, without a trailing ';'. Known
  /// once Ready has succeeded, since MySQL needs more than MariaDB to roll back idle transactions.
  std::string_view begin() const noexcept { return begin_; }
  std::string_view commit() const noexcept { return commit_; }
  std::string_view rollback() const noexcept { return rollback_; }

  /// The session that the last Run used; 0 if it has been lost.
  std::uint64_t session() const noexcept { return handle_ == nullptr ? 0 : session_; }

  /// Makes the running Run, and all later ones, fail soon.
  void Abort() noexcept;

 private:
  Status Connect();
  Status ConnectTo(const Target& target, const Endpoint& endpoint);
  Status CheckServer(const Target& target);
  Status CheckRivals(const Target& target, std::size_t chosen);
  Status CheckGrants();
  Status BeginSession();
  Answer RunNow(std::string_view sql);
  Answer Failed();
  void Disconnect() noexcept;
  void Delay();

  const ConnectionOptions options_;
  st_mysql* handle_ = nullptr;
  std::uint64_t session_ = 0;
  ServerFacts facts_;  // of the server, if there are several
  std::string begin_ = "BEGIN";
  std::string commit_ = "COMMIT";
  std::string rollback_ = "ROLLBACK";
  std::chrono::steady_clock::time_point retry_at_{};
  int failures_ = 0;  // attempts to connect since the last success
  Error last_error_;
  std::minstd_rand random_{std::random_device{}()};
  std::atomic<int> socket_{-1};
  std::atomic<bool> aborted_{false};
};

/// `bytes` as a literal: x'00FF'.
void AppendLiteral(std::string& sql, std::string_view bytes);

}  // namespace weir::mysql
