#include "service/grpc_connection.h"

#include <algorithm>
#include <utility>

namespace weir::service {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Next = net::Stream::Next;
using Stage = net::Stream::Stage;

// A read is a turn of its connection: with a longer one, a peer that sends thousands of small
// frames would keep the others waiting.
constexpr std::size_t kReadSize = 8 << 10;
constexpr std::size_t kWriteSize = 64 << 10;
/// What an idle connection keeps for its next answers.
constexpr std::size_t kKeptCapacity = 32 << 10;

}  // namespace

GrpcConnection::GrpcConnection(net::Reactor& reactor, std::unique_ptr<net::Transport> transport,
                               const grpc::Services& services, grpc::Health& health,
                               net::DoorMetrics& metrics, const GrpcDoorOptions& options)
    : Connection(reactor),
      health_(health),
      metrics_(metrics),
      options_(options),
      session_(services, options.session, SystemClock::Get(), *this),
      in_(kReadSize),
      transport_(std::move(transport)),
      stream_(*transport_, *this, reactor, options.times),
      read_at_(steady_clock::now()) {
  transport_->Attach(*this, stream_);
}

void GrpcConnection::Drain() {
  if (std::exchange(draining_, true)) return;
  if (reactor().draining()) health_.SetServing(false);
  end_calls_at_ = steady_clock::now() + options_.drain_grace;
  session_.Drain();
  // A peer that has not completed its greeting may have its first call on the way behind it.
  if (!session_.greeted()) stream_.LimitGreeting(options_.drain_grace);
  SetTimer();
}

void GrpcConnection::OnDeadline() {
  Expire();
  if (draining_ && steady_clock::now() >= end_calls_at_) {
    // Unary calls are long finished; those still open are streams that would never end.
    end_calls_at_ = steady_clock::now() + options_.drain_grace;
    session_.Drain();
    EndCalls();
  }
  SetTimer();
}

void GrpcConnection::Received(std::size_t size) {
  read_at_ = steady_clock::now();
  if (!session_.Receive({in_.data(), size})) broken_ = true;
  received_ = true;
}

Next GrpcConnection::Advance() {
  CountAnswers();
  full_.reset();
  if (ended_) return Next::kClose;
  if (overdue_) Expire();
  if (ending_) EndCalls();
  const bool worked = std::exchange(received_, false);
  if (session_.paused() && !session_.full() && !worked && !session_.Receive({})) broken_ = true;
  const bool open = session_.Fill(out_, kWriteSize) && !broken_;
  SetTimer();
  if (!open) return out_.empty() ? Next::kClose : Next::kAgain;
  if (out_.size() >= kWriteSize) return Next::kAgain;
  if (!session_.full()) return session_.paused() ? Next::kAgain : Next::kRead;
  full_.reset(this);
  return Next::kWait;
}

void GrpcConnection::Sent(std::size_t size) {
  sent_ += size;
  if (sent_ < out_.size()) return;
  if (out_.capacity() > kKeptCapacity) out_ = std::string();
  out_.clear();
  sent_ = 0;
}

void GrpcConnection::CountAnswers() {
  const std::uint64_t answered = session_.TakeAnswered();
  if (answered != 0) metrics_.Answered((steady_clock::now() - read_at_).count(), answered);
}

Stage GrpcConnection::stage() const {
  if (!session_.greeted()) return Stage::kGreeting;
  return session_.open_calls() == 0 ? Stage::kIdle : Stage::kBusy;
}

/// Idle for too long: the peer is asked to close, and has the same time again to do so.
bool GrpcConnection::OnTimeout(Stage /*stage*/) {
  if (draining_) return true;
  Drain();
  return false;
}

void GrpcConnection::OnClosed() {
  reactor().timers().Cancel(*this);
  full_.reset();
}

void GrpcConnection::Expire() {
  overdue_ = session_.Expire(SystemClock::Get().Now());
  if (overdue_) stream_.WakeLater();
}

void GrpcConnection::EndCalls() {
  ending_ = session_.EndCalls("the server is shutting down");
  if (ending_) stream_.WakeLater();
}

/// The next moment at which anything could be due; OnDeadline finds out what.
void GrpcConnection::SetTimer() {
  if (stream_.closed()) return;
  const auto deadline = session_.NextDeadline();
  if (!deadline && !draining_) return;
  // Whatever streams still send: the end of a drain does not move.
  milliseconds after = std::chrono::ceil<milliseconds>(end_calls_at_ - steady_clock::now());
  if (deadline) {
    const auto left = std::chrono::ceil<milliseconds>(
        std::chrono::nanoseconds(*deadline - SystemClock::Get().Now()));
    after = draining_ ? std::min(after, left) : left;
  }
  reactor().timers().Set(*this, std::max(after, milliseconds(0)));
}

}  // namespace weir::service
