#include "service/resp_connection.h"

#include <utility>

#include "net/reactor.h"

namespace weir::service {
namespace {

// A read takes this much, however large the buffer has become. A burst of a few hundred commands
// fits; a client that sends more waits until others have had their turn.
constexpr std::size_t kReadSize = 16 * 1024;
// A connection may hold this much, one read and its replies, however much the others hold; among
// more than 256 that hold anything it is an equal part of all, at least 64 KiB.
constexpr std::size_t kSmall = 256 * 1024;

}  // namespace

void RespWorker::Lend(resp::Buffer& buffer) {
  if (buffer.capacity() == 0 && !spare_.empty()) {
    buffer = std::move(spare_.back());
    spare_.pop_back();
  }
}

void RespWorker::TakeBack(resp::Buffer& buffer) {
  if (buffer.capacity() == 0 || !buffer.empty()) {
    return;
  }
  buffer.Shrink(kKeepCapacity);
  if (buffer.capacity() != 0 && spare_.size() < kSpareBuffers) {
    spare_.push_back(std::move(buffer));
  }
  buffer = resp::Buffer();
}

RespConnection::RespConnection(net::Reactor& reactor, RespWorker& worker,
                               std::unique_ptr<net::Transport> transport, std::string peer,
                               std::string local)
    : Connection(reactor),
      worker_(worker),
      session_(worker.worker(), std::move(peer), std::move(local), [this] { Resumed(); }),
      transport_(std::move(transport)),
      stream_(*transport_, *this, reactor, worker.options().times) {
  transport_->Attach(*this, stream_);
}

RespConnection::~RespConnection() { (void)worker_.buffered().Change(accounted_, 0); }

void RespConnection::Drain() {
  draining_ = true;
  stream_.Drain(std::chrono::milliseconds(0));
}

std::span<char> RespConnection::Space() {
  worker_.Lend(input_);
  char* const at = input_.Reserve(kReadSize);
  return {at, kReadSize};
}

net::Stream::Next RespConnection::Advance() {
  using Next = net::Stream::Next;
  if (!session_.waiting()) Feed();
  if (session_.waiting()) return Next::kWait;
  if (!Account() && !session_.closing()) {
    session_.Refuse("too many large commands and unread replies at once; try again later", output_);
  }
  if (output_.size() >= resp::Session::kMaxOutput) return Next::kAgain;
  worker_.TakeBack(input_);
  return session_.closing() || ended_ ? Next::kClose : Next::kRead;
}

void RespConnection::Feed() {
  if (input_.empty() || session_.closing()) return;
  worker_.Lend(output_);
  asked_at_ = SystemClock::Get().Now();
  input_.Consume(session_.Feed(input_.view(), output_));
  if (session_.waiting()) {
    waiting_.reset(this);
  } else {
    CountAnswers();
  }
}

bool RespConnection::Account() {
  const std::size_t held = input_.capacity() + output_.capacity();
  MemoryBudget& all = worker_.buffered();
  const bool fits = all.Change(accounted_, held) || held <= all.Share(kSmall);
  accounted_ = held;
  return fits;
}

void RespConnection::Sent(std::size_t size) {
  output_.Consume(size);
  if (session_.waiting()) return;
  worker_.TakeBack(output_);
  (void)Account();
}

void RespConnection::CountAnswers() {
  worker_.metrics().Answered(SystemClock::Get().Now() - asked_at_,
                             static_cast<std::uint64_t>(session_.fed()));
}

void RespConnection::Resumed() {
  const boost::intrusive_ptr<RespConnection> alive = std::move(waiting_);
  CountAnswers();
  stream_.Wake();
}

net::Stream::Stage RespConnection::stage() const {
  using Stage = net::Stream::Stage;
  if (!session_.authenticated()) return Stage::kGreeting;
  // A shutdown does not wait for the rest of a command.
  return input_.empty() || draining_ ? Stage::kIdle : Stage::kRequest;
}

}  // namespace weir::service
