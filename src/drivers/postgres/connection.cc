#include "drivers/postgres/connection.h"

#include <boost/asio/post.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "drivers/postgres/session.h"
#include "drivers/postgres/sqlstate.h"

namespace weir::postgres {

namespace asio = boost::asio;

void Connection::Session::Refuse(Done done, Error error, bool unsent) {
  asio::post(io_, [done = std::move(done), error = std::move(error), unsent] {
    done({.status = error, .unsent = unsent});
  });
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
    for (Query& query : group) Refuse(std::move(query.done), *refused, /*unsent=*/true);
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

// Everything that one handler sends goes out in one write.
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
  if (!sent) Lose({Code::kUnavailable, "postgres: " + OneLine(PQerrorMessage(handle_))});
}

void Connection::Session::Flush() {
  const int left = PQflush(handle_);
  if (left < 0) return Lose({Code::kUnavailable, "postgres: " + OneLine(PQerrorMessage(handle_))});
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
    return Lose({Code::kUnavailable, "postgres: " + OneLine(PQerrorMessage(handle_))});
  }
  const std::uint64_t generation = generation_;
  while (!waiting_.empty() && PQstatus(handle_) == CONNECTION_OK && PQisBusy(handle_) == 0) {
    TakeResult(PQgetResult(handle_));
    // A callback may have sent more, and so discovered that the connection is lost.
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
    case PGRES_PIPELINE_ABORTED:  // its Parse failed, which has been recorded, or one before it
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
                "postgres: " + OneLine(PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY))};
      if (statement.prepares) prepared_.erase(statement.sql);
      PQclear(result);
    }
  }
}

void Connection::Session::Finish() {
  Statement statement = std::move(waiting_.front());
  waiting_.pop_front();
  // A joined statement is not the one that commits.
  if (!statement.joined && std::exchange(unconfirmed_, false) && statement.answer.status.ok()) {
    statement.answer.status =
        Error{Code::kUnavailable, "postgres: no synchronous standby has confirmed the commit"};
  }
  // A server that has become a replica: another one is the primary now.
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
    return Lose({Code::kUnavailable, "postgres: no response in time"});
  }
  WatchDeadline();
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
