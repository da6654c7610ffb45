#include "drivers/redis/connection.h"

// How it works: a Link, and a queue of the callbacks for the next replies. One
// timer watches the oldest command and the attempt to connect. Commands sent before the
// connection is ready are kept whole; afterwards only their callbacks are.

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <deque>
#include <utility>

#include "drivers/redis/link.h"

namespace weir::redis {
ConnectionOptions ConnectionOptions::Of(const Address& address, std::size_t endpoint) {
  return {.endpoint = address.endpoints[endpoint],
          .user = address.user,
          .password = address.password,
          .database = address.database,
          .tls = address.tls};
}

class Connection::Session final : public Link {
 public:
  Session(boost::asio::io_context& io, ConnectionOptions options) : Link(io, std::move(options)) {}

  void Send(Command command, Done done);
  void Close() {
    closed_ = true;
    Lose("the connection was closed");
  }

  bool connected() const noexcept { return state_ == State::kReady; }
  std::size_t in_flight() const noexcept { return waiting_.size(); }
  const Endpoint& endpoint() const noexcept { return options_.endpoint; }

 private:
  enum class State { kIdle, kConnecting, kReady };

  struct Waiting {
    Command command;  // empty once it has been sent
    Done done;
    Clock::time_point deadline;
  };

  using Link::Lose;
  void Lose(const std::string& why, Code code) override;
  void Opened() override;
  void TakeReply(Reply reply) override;
  void Connect();
  void Ready();
  void TakeGreeting(const Reply& reply);
  void Refuse(Done done, Error error, bool sent = false);
  void Watch();
  void OnTimer();
  void ExpireUnsent();

  State state_ = State::kIdle;
  bool watching_ = false;
  std::size_t greetings_ = 0;  // replies still due before the connection is ready
  Clock::time_point connect_deadline_{};
  Clock::time_point retry_at_{};
  Error last_error_;
  std::deque<Waiting> waiting_;
};

void Connection::Session::Refuse(Done done, Error error, bool sent) {
  boost::asio::post(io_, [done = std::move(done), error = std::move(error), sent] {
    done({.status = error, .reply = {}, .sent = sent});
  });
}

void Connection::Session::Send(Command command, Done done) {
  if (waiting_.size() >= options_.max_in_flight) {
    return Refuse(std::move(done),
                  {Code::kResourceExhausted, name_ + "too many commands are in flight"});
  }
  const auto now = Clock::now();
  if (closed_ || (state_ == State::kIdle && now < retry_at_)) {
    return Refuse(std::move(done), last_error_);
  }
  if (!tls_.ok()) return Refuse(std::move(done), tls_.error());
  const bool ready = state_ == State::kReady;
  if (ready) stream_->Write(command);
  waiting_.push_back(
      {ready ? Command() : std::move(command), std::move(done), now + options_.command_timeout});
  if (state_ == State::kIdle) Connect();
  Watch();
}

void Connection::Session::Connect() {
  state_ = State::kConnecting;
  connect_deadline_ = Clock::now() + options_.connect_timeout;
  Open();
}

void Connection::Session::Opened() {
  greetings_ = Greet();
  if (greetings_ == 0) Ready();
}

void Connection::Session::Ready() {
  state_ = State::kReady;
  for (Waiting& waiting : waiting_) stream_->Write(std::exchange(waiting.command, {}));
}

void Connection::Session::TakeReply(Reply reply) {
  if (greetings_ > 0) return TakeGreeting(reply);
  if (waiting_.empty()) return Lose("unexpected reply: no command was waiting for one");
  backoff_.Reset();
  const Done done = std::move(waiting_.front().done);
  waiting_.pop_front();
  Answer answer;
  if (reply.kind == Reply::Kind::kError) {
    answer.status = Error{CodeOf(reply.text), name_ + reply.text};
  }
  answer.reply = std::move(reply);
  done(std::move(answer));
}

void Connection::Session::TakeGreeting(const Reply& reply) {
  if (reply.kind == Reply::Kind::kError) return Lose(reply.text, CodeOf(reply.text));
  if (--greetings_ == 0) Ready();
}

void Connection::Session::Watch() {
  if (watching_ || state_ == State::kIdle) return;
  if (waiting_.empty() && state_ == State::kReady) return;
  watching_ = true;
  Clock::time_point next = waiting_.empty() ? connect_deadline_ : waiting_.front().deadline;
  if (state_ == State::kConnecting) next = std::min(next, connect_deadline_);
  timer_.expires_at(next);
  timer_.async_wait(Weak([this](const boost::system::error_code& error) {
    if (!error) OnTimer();
  }));
}

void Connection::Session::OnTimer() {
  watching_ = false;
  const auto now = Clock::now();
  if (state_ == State::kConnecting) {
    if (connect_deadline_ <= now) return Lose("the server did not respond in time");
    ExpireUnsent();
  } else if (!waiting_.empty() && waiting_.front().deadline <= now) {
    return Lose("no response in time");
  }
  Watch();
}

// A command that was never sent can be dropped without abandoning the attempt to connect.
void Connection::Session::ExpireUnsent() {
  const auto now = Clock::now();
  while (!waiting_.empty() && waiting_.front().deadline <= now) {
    Refuse(std::move(waiting_.front().done), {Code::kUnavailable, name_ + "connecting timed out"});
    waiting_.pop_front();
  }
}

void Connection::Session::Lose(const std::string& why, Code code) {
  stream_.reset();
  timer_.cancel();
  watching_ = false;
  greetings_ = 0;
  const bool sent = std::exchange(state_, State::kIdle) == State::kReady;
  last_error_ = {code, name_ + why};
  retry_at_ = Clock::now() + backoff_.Next();
  std::deque<Waiting> lost = std::exchange(waiting_, {});
  for (Waiting& waiting : lost) {
    if (closed_) {
      waiting.done({.status = last_error_});
    } else {
      Refuse(std::move(waiting.done), last_error_, sent);
    }
  }
}

Connection::Connection(boost::asio::io_context& io, ConnectionOptions options)
    : session_(std::make_shared<Session>(io, std::move(options))) {}

Connection::~Connection() { session_->Close(); }

void Connection::Send(Command command, Done done) {
  session_->Send(std::move(command), std::move(done));
}

bool Connection::connected() const noexcept { return session_->connected(); }
std::size_t Connection::in_flight() const noexcept { return session_->in_flight(); }
const Endpoint& Connection::endpoint() const noexcept { return session_->endpoint(); }

}  // namespace weir::redis
