#include "net/stream.h"

#include <algorithm>
#include <array>
#include <utility>

#include "net/reactor.h"

namespace weir::net {
namespace {

using Outcome = Transport::Outcome;

constexpr std::size_t kPiece = std::size_t{16} << 10U;
/// Reads of one stream before others have their turn. A peer that sends without pause delays each
/// answer to the others by this much work, so the number is small.
constexpr int kFairRounds = 2;
/// How long a peer has to notice the end and close its own side, and how much it may send then.
constexpr std::chrono::milliseconds kLinger{1000};
constexpr std::size_t kMostLingered = std::size_t{16} << 20U;

}  // namespace

Stream::Stream(Transport& transport, Session& session, Reactor& reactor, const Times& times)
    : transport_(transport),
      session_(session),
      timers_(reactor.timers()),
      turns_(reactor.turns()),
      times_(times) {}

Stream::~Stream() = default;

void Stream::Start() {
  if (!transport_.is_open()) return Close();
  Run();
}

void Stream::OnReadable() {
  readable_ = true;
  if (!turn_) Run();
}

void Stream::OnWritable() {
  blocked_ = false;
  if (!turn_) Run();
}

void Stream::OnTurn() {
  turn_ = false;
  Wake();
}

void Stream::Wake() {
  if (next_ != Next::kClose) next_ = Next::kAgain;
  Run();
}

void Stream::WakeLater() { transport_.AwaitTurn(); }

void Stream::Run() {
  if (running_ || closed()) return;
  running_ = true;
  int rounds = 0;
  while (Step()) {
    if (++rounds == kFairRounds) {
      turn_ = true;
      transport_.AwaitTurn();
      break;
    }
  }
  running_ = false;
  Settle();
}

/// One read and the answers to it. False when there is nothing to do until the next event.
bool Stream::Step() {
  if (closed()) return false;
  if (!Flush()) {
    Close();
    return false;
  }
  if (closed() || !AllSent()) return false;
  if (state_ == State::kLingering) return Discard();
  if (next_ == Next::kClose) {
    Finish();
    return false;
  }
  if (next_ == Next::kWait || (next_ == Next::kRead && !Read())) return false;
  next_ = session_.Advance();
  progress_ = progress_ || !session_.Output().empty();
  return true;
}

/// False if there was nothing to read, or the connection is broken.
bool Stream::Read() {
  if (ended_ || !readable_) return false;
  const Transport::Received received = transport_.Receive(session_.Space());
  readable_ = transport_.more();
  switch (received.outcome) {
    case Outcome::kBytes:
      session_.Received(received.size);
      return true;
    case Outcome::kEnd:
      ended_ = true;
      session_.EndOfInput();
      return true;
    case Outcome::kBroken:
      Close();
      return false;
    case Outcome::kNothing:
      return false;
  }
  return false;
}

/// False if the connection is broken.
bool Stream::Flush() {
  if (blocked_ || !transport_.ready()) return true;
  const std::string_view output = session_.Output();
  if (output.empty()) return true;
  const std::ptrdiff_t sent = transport_.Send(output);
  if (sent < 0) return false;
  const auto size = static_cast<std::size_t>(sent);
  blocked_ = size < output.size() || !transport_.flushed();
  progress_ = progress_ || size > 0;
  session_.Sent(size);
  return true;
}

bool Stream::AllSent() const {
  if (blocked_ || !transport_.flushed()) return false;
  return !transport_.ready() || session_.Output().empty();
}

/// Ends our side and reads until the peer ends its own: closing while bytes are unread would reset
/// the connection and could lose the last answer.
void Stream::Finish() {
  if (ended_ || blocked_ || !transport_.ShutDownSend()) return Close();
  state_ = State::kLingering;
  readable_ = true;
  (void)Discard();
}

/// True if there may be more to take.
bool Stream::Discard() {
  if (!readable_) return false;
  std::array<char, kPiece> unread;
  const std::size_t most = std::min(unread.size(), turns_.spare());
  if (most == 0) {
    turn_ = true;
    transport_.AwaitSpare();
    return false;
  }
  const Transport::Received received = transport_.Receive({unread.data(), most});
  turns_.Spend(received.size);
  readable_ = transport_.more();
  lingered_ += received.size;
  const bool gone = received.outcome == Outcome::kEnd || received.outcome == Outcome::kBroken;
  if (gone || lingered_ > kMostLingered) {
    Close();
    return false;
  }
  return readable_;
}

/// Nothing can be done now: sets what to wait for, and for how long.
void Stream::Settle() {
  if (closed()) return;
  // Bytes that arrive meanwhile also wait for the turn, or a peer could bypass it.
  if (turn_) return SetTimer();
  if (!AllSent()) {
    transport_.AwaitWritable();
  } else if (state_ == State::kLingering) {
    transport_.AwaitReadable();
  } else if (next_ == Next::kRead && !ended_) {
    if (draining_ && !readable_ && session_.stage() == Stage::kIdle && progress_) {
      next_ = Next::kClose;
      return Run();
    }
    transport_.AwaitReadable();
  }
  SetTimer();
}

Stream::Timing Stream::TimingNow() const {
  if (state_ == State::kLingering) return Timing::kLinger;
  // Checked first: a peer that takes answers slowly would otherwise restart this time with each.
  const Stage stage = session_.stage();
  if (!transport_.ready() || stage == Stage::kGreeting) return Timing::kGreeting;
  if (!AllSent()) return Timing::kWrite;
  if (next_ == Next::kWait) return Timing::kNone;
  switch (stage) {
    case Stage::kGreeting:
    case Stage::kIdle:
      return Timing::kIdle;
    case Stage::kRequest:
      return Timing::kRequest;
    case Stage::kBusy:
      break;
  }
  return Timing::kNone;
}

std::chrono::milliseconds Stream::LimitOf(Timing timing) const noexcept {
  switch (timing) {
    case Timing::kGreeting:
      return draining_ ? grace_ : times_.greeting;
    case Timing::kIdle:
      return draining_ ? grace_ : times_.idle;
    case Timing::kRequest:
      return times_.request;
    case Timing::kWrite:
      return times_.write;
    case Timing::kLinger:
    case Timing::kNone:
      break;
  }
  return kLinger;
}

void Stream::SetTimer() {
  const Timing now = TimingNow();
  const bool progress = std::exchange(progress_, false);
  // A peer that has not finished its greeting earns no time by being answered.
  const bool renewed = progress && now != Timing::kGreeting && now != Timing::kLinger;
  if (now == timing_ && !renewed) return;
  timing_ = now;
  if (now == Timing::kNone) return timers_.Cancel(*this);
  timers_.Set(*this, LimitOf(now));
}

void Stream::OnDeadline() {
  const Timing passed = std::exchange(timing_, Timing::kNone);
  if (passed != Timing::kIdle && passed != Timing::kRequest) return Close();
  if (draining_ || session_.OnTimeout(session_.stage())) return Close();
  Wake();
}

void Stream::Drain(std::chrono::milliseconds grace) {
  if (closed() || std::exchange(draining_, true)) return;
  grace_ = grace;
  // Connections without a request get only the grace period, from now on.
  if (timing_ == Timing::kIdle || timing_ == Timing::kGreeting) timing_ = Timing::kNone;
  Run();
}

void Stream::LimitGreeting(std::chrono::milliseconds limit) {
  if (closed()) return;
  times_.greeting = std::min(times_.greeting, limit);
  if (timing_ != Timing::kGreeting) return;
  timing_ = Timing::kNone;
  SetTimer();
}

void Stream::Close() {
  if (std::exchange(state_, State::kClosed) == State::kClosed) return;
  timers_.Cancel(*this);
  transport_.Close();
  session_.OnClosed();
}

}  // namespace weir::net
