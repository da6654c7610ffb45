#include "drivers/postgres/connection.h"

// How it works: libpq in pipeline mode on a non-blocking socket. Every statement is followed by a
// sync, so one that fails takes no other with it. The socket is watched by Asio; libpq reads and
// writes. One timer watches the oldest statement in flight, or the attempt to connect.

#include <libpq-fe.h>

#include <algorithm>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <deque>
#include <optional>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/blocking.h"
#include "drivers/postgres/sqlstate.h"
#include "drivers/postgres/url.h"

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

// The url has the last word.
Result<Target> TargetOf(const ConnectionOptions& options) {
  Result<Target> target = Target::Parse(options.url);
  if (!target.ok()) return target;
  target->Default("application_name", "weir");
  target->Default("options", options.session);
  return target;
}

}  // namespace

class Connection::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(asio::io_context& io, ConnectionOptions options)
      : io_(io),
        options_(std::move(options)),
        target_(TargetOf(options_)),
        descriptor_(io),
        timer_(io) {}
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
  enum class State { kIdle, kConnecting, kReady };

  struct Statement {
    std::string sql;
    Params params;
    Done done;
    Clock::time_point deadline;
    bool joined = false;    // the next one belongs to the same group: no sync after this one
    bool prepares = false;  // a Parse goes before it, whose result comes first
    int results_due = 0;    // of the Parse and of itself
    Answer answer = {};
  };

  void Connect();
  Status Start();
  void Poll();
  void Refused();
  void Opened();
  void Refuse(Done done, Error error);
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

  asio::io_context& io_;
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
  std::uint64_t generation_ = 0;  // of the socket; handlers of an older one do nothing
  Clock::time_point retry_at_{};
  int failures_ = 0;  // attempts to connect since the last that succeeded
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

void Connection::Session::Refuse(Done done, Error error) {
  asio::post(io_, [done = std::move(done), error = std::move(error)] { done({.status = error}); });
}

void Connection::Session::SendGroup(std::vector<Query> group, std::uint64_t session) {
  const auto now = Clock::now();
  std::optional<Error> refused;
  if (waiting_.size() + group.size() > options_.max_in_flight) {
    refused = {Code::kResourceExhausted, "postgres: too many statements are in flight"};
  } else if (session != 0 && (state_ != State::kReady || session != generation_)) {
    refused = {Code::kUnavailable, "postgres: the session has been lost"};
  } else if (state_ == State::kIdle && now < retry_at_) {
    refused = last_error_;
  }
  if (refused) {
    for (Query& query : group) Refuse(std::move(query.done), *refused);
    return;
  }
  const std::size_t first = waiting_.size();
  for (Query& query : group) {
    waiting_.push_back(
        {std::string(query.sql), std::move(query.params), std::move(query.done),
         now + (query.timeout.count() > 0 ? query.timeout : options_.statement_timeout),
         /*joined=*/true});
  }
  waiting_.back().joined = false;
  if (state_ == State::kIdle) return Connect();
  if (state_ != State::kReady) return;
  for (std::size_t i = first; i < waiting_.size(); ++i) {
    Transmit(waiting_[i]);
    if (state_ != State::kReady) return;
  }
  FlushSoon();
  WatchDeadline();
}

// What is sent by one handler goes out in one write.
void Connection::Session::FlushSoon() {
  if (flushing_) return;
  flushing_ = true;
  asio::post(io_, [weak = weak_from_this(), generation = generation_] {
    const std::shared_ptr<Session> self = weak.lock();
    if (!self || self->generation_ != generation) return;
    self->flushing_ = false;
    self->Flush();
  });
}

void Connection::Session::Connect() {
  state_ = State::kConnecting;
  ++generation_;
  if (Status started = Start(); !started.ok()) {
    // Not from inside Send, which promises so.
    asio::post(io_, [weak = weak_from_this(), error = started.error()] {
      if (auto self = weak.lock()) self->Lose(error);
    });
    return;
  }
  PQsetErrorVerbosity(handle_, PQERRORS_VERBOSE);  // the one way to learn the SQLSTATE of a refusal
  timer_.expires_after(options_.connect_timeout);
  timer_.async_wait(Guard([this] {
    if (state_ == State::kConnecting) {
      Lose({Code::kUnavailable, "postgres: the server did not answer in time"});
    }
  }));
  descriptor_.assign(PQsocket(handle_));
  descriptor_.async_wait(Descriptor::wait_write, Guard([this] { Poll(); }));
}

Status Connection::Session::Start() {
  if (!target_.ok()) return target_.error();
  const Target::Words words = target_->words();
  MayBlock("connecting to PostgreSQL, which resolves its host name");
  handle_ = PQconnectStartParams(words.names.data(), words.values.data(), 0);
  if (handle_ == nullptr) return Error{Code::kUnavailable, "postgres: out of memory"};
  if (PQstatus(handle_) != CONNECTION_BAD) return {};
  return Error{Code::kUnavailable, "postgres: " + Trimmed(PQerrorMessage(handle_))};
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
      Refused();
  }
}

void Connection::Session::Refused() {
  const ConnectError error = ReadConnectError(PQerrorMessage(handle_));
  const bool not_let_in = error.sqlstate.starts_with("28");
  Lose({not_let_in ? options_.refused : Code::kUnavailable, "postgres: " + error.message});
}

void Connection::Session::Opened() {
  if (PQsetnonblocking(handle_, 1) != 0 || PQenterPipelineMode(handle_) != 1) {
    return Lose({Code::kUnavailable, "postgres: " + Trimmed(PQerrorMessage(handle_))});
  }
  PQsetErrorVerbosity(handle_, PQERRORS_DEFAULT);
  PQsetNoticeProcessor(
      handle_, [](void*, const char*) {}, nullptr);
  state_ = State::kReady;
  failures_ = 0;
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
    found->second = "w" + std::to_string(++names_);
    statement.prepares = true;
    ++statement.results_due;
    sent = PQsendPrepare(handle_, found->second.c_str(), statement.sql.c_str(), count,
                         types.data()) == 1;
  }
  sent = sent &&
         PQsendQueryPrepared(handle_, found->second.c_str(), count, values.data(), lengths.data(),
                             formats.data(), 1) == 1 &&
         (statement.joined || PQpipelineSync(handle_) == 1);
  ++statement.results_due;
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
  if (lose_soon_) return Lose({Code::kUnavailable, "postgres: the server is read-only"});
  Flush();
  if (generation_ == generation && state_ == State::kReady) AwaitRead();
}

void Connection::Session::TakeResult(PGresult* result) {
  Statement& statement = waiting_.front();
  if (result == nullptr) {  // the end of one command's results
    if (--statement.results_due == 0 && statement.joined) Finish();
    return;
  }
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
    case PGRES_PIPELINE_ABORTED:  // its Parse failed, which has been noted, or one before it
      if (statement.answer.status.ok()) {
        statement.answer.status =
            Error{Code::kUnavailable, "postgres: a statement before this one failed"};
        if (statement.prepares) prepared_.erase(statement.sql);
      }
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
  // A server that has become a replica: another is the primary now.
  if (statement.answer.sqlstate == kReadOnly) lose_soon_ = true;
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
  const bool was_ready = state_ == State::kReady;
  Disconnect();
  last_error_ = error;
  retry_at_ = was_ready ? Clock::time_point() : Clock::now() + NextDelay();
  if (!was_ready && target_.ok()) target_->Rotate();
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

std::chrono::microseconds Connection::Session::NextDelay() {
  const std::chrono::microseconds longest = options_.longest_reconnect_delay;
  std::chrono::microseconds delay = options_.reconnect_delay;
  for (int i = 0; i < failures_ && delay < longest; ++i) delay *= 2;
  ++failures_;
  delay = std::min(delay, longest);
  // At random, so that a fleet does not come back all at once.
  return delay / 2 +
         std::chrono::microseconds(random_() % (static_cast<std::uint64_t>(delay.count()) / 2 + 1));
}

void Connection::Session::Disconnect() {
  ++generation_;
  timer_.cancel();
  // libpq owns the socket.
  if (descriptor_.is_open()) descriptor_.release();
  if (handle_ != nullptr) PQfinish(std::exchange(handle_, nullptr));
  prepared_.clear();
  state_ = State::kIdle;
  writing_ = watching_ = flushing_ = lose_soon_ = false;
}

Connection::Connection(asio::io_context& io, ConnectionOptions options)
    : session_(std::make_shared<Session>(io, std::move(options))) {}

Connection::~Connection() { session_->Close(); }

void Connection::Send(std::string_view sql, Params params, Done done) {
  std::vector<Query> group;
  group.push_back({sql, std::move(params), std::move(done)});
  session_->SendGroup(std::move(group), 0);
}

void Connection::SendGroup(std::vector<Query> group, std::uint64_t session) {
  if (!group.empty()) session_->SendGroup(std::move(group), session);
}

std::uint64_t Connection::session() const noexcept { return session_->session(); }

bool Connection::connected() const noexcept { return session_->connected(); }
std::size_t Connection::in_flight() const noexcept { return session_->in_flight(); }

}  // namespace weir::postgres
