#pragma once

// The implementation of a Connection; for connection.cc and connecting.cc.
//
// How it works: libpq in pipeline mode on a non-blocking socket. Every statement is followed by a
// sync, so one that fails affects no other. The socket is watched by Asio; libpq reads and
// writes. One timer watches the oldest statement in flight, or the attempt to connect.

#include <libpq-fe.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "drivers/io_thread.h"
#include "drivers/postgres/connection.h"
#include "drivers/postgres/survey.h"
#include "drivers/postgres/url.h"

namespace weir::postgres {

/// Thread safety: as Connection.
class Connection::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(boost::asio::io_context& io, ConnectionOptions options);
  ~Session() { Disconnect(); }

  void SendGroup(std::vector<Query> group, std::uint64_t session);
  std::uint64_t session() const noexcept { return state_ == State::kReady ? generation_ : 0; }
  void Close() {
    closed_ = true;
    Lose({Code::kUnavailable, "postgres: the connection was closed"});
  }

  bool connected() const noexcept { return state_ == State::kReady; }
  std::size_t in_flight() const noexcept { return waiting_.size(); }

 private:
  using Clock = std::chrono::steady_clock;
  using Timer = IoThread::Timer;
  using Descriptor =
      boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type>;

  enum class State { kIdle, kConnecting, kReady };

  struct Statement {
    std::string sql;
    Params params;
    Done done;
    Clock::time_point deadline;
    bool joined = false;    // the next one belongs to the same group: no sync after this one
    bool prepares = false;  // a Parse goes before it, whose result comes first
    int results_due = 0;    // results still due: of the Parse and of itself
    Answer answer = {};
  };

  void Connect();
  void Open();
  Status Start();
  void Poll();
  void Refused();
  void Opened();
  void Refuse(Done done, Error error, bool unsent);
  void Transmit(Statement& statement);
  void Flush();
  void FlushSoon();
  void AwaitRead();
  void AwaitWrite();
  void OnReadable();
  void TakeResult(PGresult* result);
  void Finish();
  void WatchDeadline();
  void OnDeadline();
  void Lose(const Error& error);
  std::chrono::microseconds NextDelay();
  void Disconnect();
  template <typename Handler>
  auto Guard(Handler handler);

  boost::asio::io_context& io_;
  const ConnectionOptions options_;
  Result<Target> target_;
  Descriptor descriptor_;
  Timer timer_;
  State state_ = State::kIdle;
  PGconn* handle_ = nullptr;
  bool closed_ = false;
  bool writing_ = false;
  bool flushing_ = false;
  bool watching_ = false;
  bool lose_soon_ = false;
  bool unconfirmed_ = false;        // the last commit has not reached a synchronous standby
  std::unique_ptr<Survey> survey_;  // before connecting to one of several hosts
  std::uint64_t generation_ = 0;    // of the socket; handlers of an older one do nothing
  Clock::time_point retry_at_{};
  int failures_ = 0;  // attempts to connect since the last success
  std::minstd_rand random_{std::random_device{}()};
  Error last_error_;
  std::deque<Statement> waiting_;  // in flight, or waiting for the connection
  std::unordered_map<std::string, std::string> prepared_;
  std::uint64_t names_ = 0;  // given to prepared statements so far
};

// A handler that runs only if this session and this socket still exist.
template <typename Handler>
auto Connection::Session::Guard(Handler handler) {
  return [weak = weak_from_this(), generation = generation_,
          handler = std::move(handler)](const boost::system::error_code& error) {
    const std::shared_ptr<Session> self = weak.lock();
    if (self && self->generation_ == generation && !error) handler();
  };
}

}  // namespace weir::postgres
