#include "drivers/postgres/connection.h"

// How it works: libpq in pipeline mode on a non-blocking socket. Every statement is followed by a
// sync, so one that fails takes no other with it. The socket is watched by Asio; libpq reads and
// writes. One timer watches the oldest statement in flight, or the attempt to connect.

#include <libpq-fe.h>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "drivers/postgres/sqlstate.h"

namespace weir::postgres {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using Timer =
    asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, asio::io_context::executor_type>;
using Descriptor = asio::posix::basic_stream_descriptor<asio::io_context::executor_type>;

std::string Trimmed(const char* text) {
  std::string out = text == nullptr ? "" : text;
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

}  // namespace

class Connection::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(asio::io_context& io, ConnectionOptions options)
      : io_(io), options_(std::move(options)), descriptor_(io), timer_(io) {}
  ~Session() { Disconnect(); }

  void Send(std::string_view sql, Params params, Done done);
  void Close() {
    closed_ = true;
    Lose({Code::kUnavailable, "postgres: the connection was closed"});
  }

  bool connected() const noexcept { return state_ == State::kReady; }
  std::size_t in_flight() const noexcept { return waiting_.size(); }

 private:
  enum class State { kIdle, kConnecting, kReady };

  struct Statement {
    std::string sql;
    Params params;
    Done done;
    Clock::time_point deadline;
    bool prepares = false;  // a Parse goes before it, whose result comes first
    Answer answer = {};
  };

  void Connect();
  void Poll();
  void Opened();
  void Refuse(Done done, Error error);
  void Transmit(Statement& statement);
  void Flush();
  void AwaitRead();
  void AwaitWrite();
  void OnReadable();
  void TakeResult(PGresult* result);
  void Finish();
  void WatchDeadline();
  void OnDeadline();
  void Lose(const Error& error);
  void Disconnect();
  template <typename Handler>
  auto Guard(Handler handler);

  asio::io_context& io_;
  const ConnectionOptions options_;
  Descriptor descriptor_;
  Timer timer_;
  State state_ = State::kIdle;
  PGconn* handle_ = nullptr;
  bool closed_ = false;
  bool writing_ = false;
  bool watching_ = false;
  std::uint64_t generation_ = 0;  // of the socket; handlers of an older one do nothing
  Clock::time_point retry_at_{};
  Error last_error_;
  std::deque<Statement> waiting_;  // in flight, or waiting for the connection
  std::unordered_map<std::string, std::string> prepared_;
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

void Connection::Session::Refuse(Done done, Error error) {
  asio::post(io_, [done = std::move(done), error = std::move(error)] { done({.status = error}); });
}

void Connection::Session::Send(std::string_view sql, Params params, Done done) {
  if (waiting_.size() >= options_.max_in_flight) {
    return Refuse(std::move(done),
                  {Code::kResourceExhausted, "postgres: too many statements are in flight"});
  }
  const auto now = Clock::now();
  if (state_ == State::kIdle && now < retry_at_) return Refuse(std::move(done), last_error_);
  waiting_.push_back(
      {std::string(sql), std::move(params), std::move(done), now + options_.statement_timeout});
  if (state_ == State::kIdle) {
    Connect();
  } else if (state_ == State::kReady) {
    Transmit(waiting_.back());
    if (state_ == State::kReady) Flush();
    WatchDeadline();
  }
}

void Connection::Session::Connect() {
  state_ = State::kConnecting;
  const char* names[] = {"dbname", "application_name", nullptr};
  const char* values[] = {options_.url.c_str(), "weir", nullptr};
  handle_ = PQconnectStartParams(names, values, 1);
  ++generation_;
  if (handle_ == nullptr || PQstatus(handle_) == CONNECTION_BAD) {
    const std::string reason =
        handle_ == nullptr ? "out of memory" : Trimmed(PQerrorMessage(handle_));
    // Not from inside Send, which promises so.
    asio::post(io_, [weak = weak_from_this(), reason] {
      if (auto self = weak.lock()) self->Lose({Code::kUnavailable, "postgres: " + reason});
    });
    return;
  }
  timer_.expires_after(options_.connect_timeout);
  timer_.async_wait(Guard([this] {
    if (state_ == State::kConnecting) {
      Lose({Code::kUnavailable, "postgres: the server did not answer in time"});
    }
  }));
  descriptor_.assign(PQsocket(handle_));
  descriptor_.async_wait(Descriptor::wait_write, Guard([this] { Poll(); }));
}

void Connection::Session::Poll() {
  const PostgresPollingStatusType status = PQconnectPoll(handle_);
  // libpq may have moved on to another address and so to another socket.
  if (status != PGRES_POLLING_FAILED && descriptor_.native_handle() != PQsocket(handle_)) {
    descriptor_.release();
    descriptor_.assign(PQsocket(handle_));
  }
  switch (status) {
    case PGRES_POLLING_READING:
      descriptor_.async_wait(Descriptor::wait_read, Guard([this] { Poll(); }));
      return;
    case PGRES_POLLING_WRITING:
      descriptor_.async_wait(Descriptor::wait_write, Guard([this] { Poll(); }));
      return;
    case PGRES_POLLING_OK:
      return Opened();
    default:
      Lose({Code::kUnavailable, "postgres: " + Trimmed(PQerrorMessage(handle_))});
  }
}

void Connection::Session::Opened() {
  if (PQsetnonblocking(handle_, 1) != 0 || PQenterPipelineMode(handle_) != 1) {
    return Lose({Code::kUnavailable, "postgres: " + Trimmed(PQerrorMessage(handle_))});
  }
  PQsetNoticeProcessor(
      handle_, [](void*, const char*) {}, nullptr);
  state_ = State::kReady;
  retry_at_ = {};
  timer_.cancel();
  for (Statement& statement : waiting_) {
    Transmit(statement);
    if (state_ != State::kReady) return;
  }
  AwaitRead();
  Flush();
  WatchDeadline();
}

void Connection::Session::Transmit(Statement& statement) {
  const std::vector<Params::Value>& given = statement.params.values_;
  std::vector<const char*> values(given.size());
  std::vector<int> lengths(given.size());
  std::vector<Oid> types(given.size());
  const std::vector<int> formats(given.size(), 1);
  for (std::size_t i = 0; i < given.size(); ++i) {
    values[i] = given[i].null ? nullptr : given[i].bytes.data();
    lengths[i] = static_cast<int>(given[i].bytes.size());
    types[i] = given[i].type;
  }
  const int count = static_cast<int>(given.size());
  auto [found, is_new] = prepared_.try_emplace(statement.sql);
  bool sent = true;
  if (is_new) {
    found->second = "w" + std::to_string(prepared_.size());
    statement.prepares = true;
    sent = PQsendPrepare(handle_, found->second.c_str(), statement.sql.c_str(), count,
                         types.data()) == 1;
  }
  sent = sent &&
         PQsendQueryPrepared(handle_, found->second.c_str(), count, values.data(), lengths.data(),
                             formats.data(), 1) == 1 &&
         PQpipelineSync(handle_) == 1;
  if (!sent) Lose({Code::kUnavailable, "postgres: " + Trimmed(PQerrorMessage(handle_))});
}

void Connection::Session::Flush() {
  const int left = PQflush(handle_);
  if (left < 0) return Lose({Code::kUnavailable, "postgres: " + Trimmed(PQerrorMessage(handle_))});
  if (left == 1) AwaitWrite();
}

void Connection::Session::AwaitWrite() {
  if (writing_) return;
  writing_ = true;
  descriptor_.async_wait(Descriptor::wait_write, Guard([this] {
                           writing_ = false;
                           Flush();
                         }));
}

void Connection::Session::AwaitRead() {
  descriptor_.async_wait(Descriptor::wait_read, Guard([this] { OnReadable(); }));
}

void Connection::Session::OnReadable() {
  if (PQconsumeInput(handle_) != 1) {
    return Lose({Code::kUnavailable, "postgres: " + Trimmed(PQerrorMessage(handle_))});
  }
  const std::uint64_t generation = generation_;
  while (!waiting_.empty() && PQstatus(handle_) == CONNECTION_OK && PQisBusy(handle_) == 0) {
    TakeResult(PQgetResult(handle_));
    // A callback may have sent more, and that may have found the connection lost.
    if (generation_ != generation) return;
  }
  if (PQstatus(handle_) == CONNECTION_BAD) {
    return Lose({Code::kUnavailable, "postgres: the server closed the connection"});
  }
  Flush();
  if (generation_ == generation && state_ == State::kReady) AwaitRead();
}

void Connection::Session::TakeResult(PGresult* result) {
  if (result == nullptr) return;  // the end of one command's results
  Statement& statement = waiting_.front();
  switch (PQresultStatus(result)) {
    case PGRES_PIPELINE_SYNC:
      PQclear(result);
      return Finish();
    case PGRES_COMMAND_OK:
      if (statement.prepares) {
        statement.prepares = false;
        PQclear(result);
        return;
      }
      [[fallthrough]];
    case PGRES_TUPLES_OK:
      statement.answer.rows = Rows(result);
      return;
    case PGRES_PIPELINE_ABORTED:  // its Parse failed, which has been noted
      PQclear(result);
      return;
    default: {
      const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
      statement.answer.sqlstate = state == nullptr ? "" : state;
      statement.answer.status =
          Error{CodeOf(statement.answer.sqlstate),
                "postgres: " + Trimmed(PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY))};
      if (statement.prepares) prepared_.erase(statement.sql);
      PQclear(result);
    }
  }
}

void Connection::Session::Finish() {
  Statement statement = std::move(waiting_.front());
  waiting_.pop_front();
  statement.done(std::move(statement.answer));
}

void Connection::Session::WatchDeadline() {
  if (watching_ || waiting_.empty() || state_ != State::kReady) return;
  watching_ = true;
  timer_.expires_at(waiting_.front().deadline);
  timer_.async_wait(Guard([this] { OnDeadline(); }));
}

void Connection::Session::OnDeadline() {
  watching_ = false;
  if (!waiting_.empty() && waiting_.front().deadline <= Clock::now()) {
    return Lose({Code::kUnavailable, "postgres: no answer in time"});
  }
  WatchDeadline();
}

void Connection::Session::Lose(const Error& error) {
  Disconnect();
  last_error_ = error;
  retry_at_ = Clock::now() + options_.reconnect_delay;
  std::deque<Statement> lost = std::move(waiting_);
  waiting_.clear();
  for (Statement& statement : lost) {
    if (closed_) {
      statement.done({.status = error});
    } else {
      Refuse(std::move(statement.done), error);
    }
  }
}

void Connection::Session::Disconnect() {
  ++generation_;
  timer_.cancel();
  // libpq owns the socket.
  if (descriptor_.is_open()) descriptor_.release();
  if (handle_ != nullptr) PQfinish(std::exchange(handle_, nullptr));
  prepared_.clear();
  state_ = State::kIdle;
  writing_ = watching_ = false;
}

Connection::Connection(asio::io_context& io, ConnectionOptions options)
    : session_(std::make_shared<Session>(io, std::move(options))) {}

Connection::~Connection() { session_->Close(); }

void Connection::Send(std::string_view sql, Params params, Done done) {
  session_->Send(sql, std::move(params), std::move(done));
}

bool Connection::connected() const noexcept { return session_->connected(); }
std::size_t Connection::in_flight() const noexcept { return session_->in_flight(); }

}  // namespace weir::postgres
