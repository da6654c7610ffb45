// How a session connects, and how it ends.

#include <algorithm>
#include <boost/asio/post.hpp>
#include <string_view>

#include "base/blocking.h"
#include "drivers/postgres/session.h"
#include "drivers/postgres/sqlstate.h"

namespace weir::postgres {
namespace {

namespace asio = boost::asio;

// The url takes precedence.
Result<Target> TargetOf(const ConnectionOptions& options) {
  Result<Target> target = Target::Parse(options.url);
  if (!target.ok()) return target;
  target->Default("application_name", "weir");
  target->Default("options", options.session);
  return target;
}

}  // namespace

Connection::Session::Session(asio::io_context& io, ConnectionOptions options)
    : io_(io),
      options_(std::move(options)),
      target_(TargetOf(options_)),
      descriptor_(io),
      timer_(io) {}

void Connection::Session::Connect() {
  state_ = State::kConnecting;
  ++generation_;
  if (!target_.ok() || !target_->wants_primary()) return Open();
  // Half of the time at most for hosts that do not answer.
  survey_ = std::make_unique<Survey>(
      io_, *target_, options_.connect_timeout / 2,
      [weak = weak_from_this(), generation = generation_](const Status& surveyed) {
        const std::shared_ptr<Session> self = weak.lock();
        if (!self || self->generation_ != generation) return;
        surveyed.ok() ? self->Open() : self->Lose(surveyed.error());
      });
}

void Connection::Session::Open() {
  if (Status started = Start(); !started.ok()) {
    // Not from inside Send, which promises that.
    asio::post(io_, [weak = weak_from_this(), error = started.error()] {
      if (auto self = weak.lock()) self->Lose(error);
    });
    return;
  }
  PQsetErrorVerbosity(handle_, PQERRORS_VERBOSE);  // the one way to learn the SQLSTATE of a refusal
  timer_.expires_after(options_.connect_timeout);
  timer_.async_wait(Guard([this] {
    if (state_ == State::kConnecting) {
      Lose({Code::kUnavailable, "postgres: the server did not respond in time"});
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
  return Error{Code::kUnavailable, "postgres: " + OneLine(PQerrorMessage(handle_))};
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
  Code code = Code::kUnavailable;
  if (error.sqlstate.starts_with("28")) code = options_.refused;
  const bool no_database = error.sqlstate == "3D000";
  if (no_database && options_.refused != code) code = Code::kPermissionDenied;
  Lose({code, "postgres: " + error.message});
}

void Connection::Session::Opened() {
  if (PQsetnonblocking(handle_, 1) != 0 || PQenterPipelineMode(handle_) != 1) {
    return Lose({Code::kUnavailable, "postgres: " + OneLine(PQerrorMessage(handle_))});
  }
  PQsetErrorVerbosity(handle_, PQERRORS_DEFAULT);
  // A commit whose wait for a synchronous standby was cut short (by statement_timeout, or by hand)
  // is answered as a success, with a warning. Its text is translated, its source location is not.
  PQsetNoticeReceiver(
      handle_,
      [](void* session, const PGresult* notice) {
        const char* place = PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION);
        if (place != nullptr && std::string_view(place) == "SyncRepWaitForLSN") {
          static_cast<Session*>(session)->unconfirmed_ = true;
        }
      },
      this);
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

void Connection::Session::Lose(const Error& error) {
  const bool was_ready = state_ == State::kReady;
  Disconnect();
  last_error_ = error;
  retry_at_ = was_ready ? Clock::time_point() : Clock::now() + NextDelay();
  if (!was_ready && target_.ok()) target_->Rotate();
  std::deque<Statement> lost = std::move(waiting_);
  waiting_.clear();
  for (Statement& statement : lost) {
    const bool unsent = statement.results_due == 0;
    if (closed_) {
      statement.done({.status = error, .unsent = unsent});
    } else {
      Refuse(std::move(statement.done), error, unsent);
    }
  }
}

std::chrono::microseconds Connection::Session::NextDelay() {
  const std::chrono::microseconds longest = options_.longest_reconnect_delay;
  std::chrono::microseconds delay = options_.reconnect_delay;
  for (int i = 0; i < failures_ && delay < longest; ++i) delay *= 2;
  ++failures_;
  delay = std::min(delay, longest);
  // Random, so that a fleet does not reconnect all at once.
  return delay / 2 +
         std::chrono::microseconds(random_() % (static_cast<std::uint64_t>(delay.count()) / 2 + 1));
}

void Connection::Session::Disconnect() {
  ++generation_;
  timer_.cancel();
  survey_.reset();
  // libpq owns the socket.
  if (descriptor_.is_open()) descriptor_.release();
  if (handle_ != nullptr) PQfinish(std::exchange(handle_, nullptr));
  prepared_.clear();
  state_ = State::kIdle;
  writing_ = watching_ = flushing_ = lose_soon_ = unconfirmed_ = false;
}

}  // namespace weir::postgres
