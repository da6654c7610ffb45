#include "service/resp_connection.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "net/reactor.h"

namespace weir::service {
namespace {

// A read asks for this much. A burst of a few hundred commands fits; the kernel rarely has more.
constexpr std::size_t kReadSize = 64 * 1024;
// Reads of one connection before the others get their turn.
constexpr int kFairRounds = 8;
// For a peer to notice that the connection is being closed.
constexpr std::chrono::milliseconds kLinger{2000};

}  // namespace

void RespDesk::Lend(resp::Buffer& buffer) {
  if (buffer.capacity() == 0 && !spare_.empty()) {
    buffer = std::move(spare_.back());
    spare_.pop_back();
  }
}

void RespDesk::TakeBack(resp::Buffer& buffer) {
  if (buffer.capacity() == 0 || !buffer.empty()) {
    return;
  }
  buffer.Shrink(kKeepCapacity);
  if (buffer.capacity() != 0 && spare_.size() < kSpareBuffers) {
    spare_.push_back(std::move(buffer));
  }
  buffer = resp::Buffer();
}

RespConnection::RespConnection(net::Reactor& reactor, RespDesk& desk, net::Socket socket,
                               std::string peer, std::string local,
                               std::unique_ptr<net::TlsSession> tls)
    : Connection(reactor),
      desk_(desk),
      socket_(std::move(socket), *this, *this),
      tls_(std::move(tls)),
      session_(desk.shop(), std::move(peer), std::move(local), [this] { Resumed(); }) {}

RespConnection::~RespConnection() = default;

void RespConnection::Start() {
  open_.reset(this);
  if (!socket_.is_open()) {
    Close();
    return;
  }
  SetDeadline();
  socket_.AwaitReadable();
}

void RespConnection::OnReadable() {
  readable_ = true;
  Run();
}

void RespConnection::OnWritable() {
  writable_ = true;
  Run();
}

void RespConnection::Run() {
  const boost::intrusive_ptr<RespConnection> alive(this);
  int rounds = 0;
  while (open_ && Step()) {
    if (++rounds == kFairRounds) {
      GoOnLater();
      return;
    }
  }
  if (!open_) {
    return;
  }
  SetDeadline();
  if (!readable_ && !ended_) {
    socket_.AwaitReadable();
  }
  if (!writable_) {
    socket_.AwaitWritable();
  }
}

void RespConnection::GoOnLater() {
  boost::asio::post(reactor().context(), [self = boost::intrusive_ptr<RespConnection>(this)] {
    if (self->open_) {
      self->Run();
    }
  });
}

// One read and the replies to it. False when there is nothing to do until something happens.
bool RespConnection::Step() {
  if (session_.waiting()) {
    return false;
  }
  if (lingering_) {
    Linger();
    return false;
  }
  if (!Flush()) {
    Close();
    return false;
  }
  if (!sent()) {
    return false;  // no more is read from a peer that does not take its replies
  }
  if (!unfinished_ && readable_ && !ended_ && !Receive()) {
    Close();
    return false;
  }
  Process();
  if (!Flush()) {
    Close();
    return false;
  }
  if (!sent() || session_.waiting()) {
    return false;
  }
  if (session_.closing() || (!unfinished_ && (ended_ || (draining_ && !readable_)))) {
    Finish();
    return false;
  }
  return unfinished_ || (readable_ && !ended_);
}

// Everything is answered and sent. A peer that is still sending must not have its last reply
// destroyed by a reset, so its words are taken, unread, until it closes too or has had its time.
void RespConnection::Finish() {
  if (tls_) {
    tls_->Close();
    static_cast<void>(Flush());
  }
  if (ended_ || !session_.closing()) {
    Close();
    return;
  }
  lingering_ = true;
  static_cast<void>(socket_.ShutDownSend());
  reactor().timers().Set(*this, kLinger);
  Linger();
}

void RespConnection::Linger() {
  net::EdgeSocket::Received received{};
  do {
    received = socket_.Receive(desk_.scratch());
  } while (received.outcome == net::EdgeSocket::Outcome::kBytes);
  readable_ = false;
  if (received.outcome != net::EdgeSocket::Outcome::kNothing) {
    Close();
  }
}

void RespConnection::Process() {
  unfinished_ = false;
  if (!input_.empty() && !session_.closing()) {
    desk_.Lend(output_);
    asked_at_ = SystemClock::Get().Now();
    input_.Consume(session_.Feed(input_.view(), output_));
    if (!session_.waiting()) {
      CountAnswers();
    }
    unfinished_ = session_.waiting() || output_.size() >= resp::Session::kMaxOutput;
  }
  if (!session_.waiting()) {
    desk_.TakeBack(input_);
  }
}

void RespConnection::CountAnswers() {
  desk_.metrics().Answered(SystemClock::Get().Now() - asked_at_,
                           static_cast<std::uint64_t>(session_.fed()));
}

// False if the connection is broken.
bool RespConnection::Receive() {
  if (tls_) {
    return ReceiveTls();
  }
  desk_.Lend(input_);
  char* const at = input_.Reserve(kReadSize);
  const net::EdgeSocket::Received received = socket_.Receive({at, input_.room()});
  input_.Commit(received.size);
  return Note(received);
}

bool RespConnection::Note(const net::EdgeSocket::Received& received) {
  readable_ = socket_.more();
  ended_ = received.outcome == net::EdgeSocket::Outcome::kEnd;
  return received.outcome != net::EdgeSocket::Outcome::kBroken;
}

bool RespConnection::ReceiveTls() {
  std::vector<char>& scratch = desk_.scratch();
  const net::EdgeSocket::Received received = socket_.Receive(scratch);
  if (!Note(received) || received.size == 0) {
    return received.outcome != net::EdgeSocket::Outcome::kBroken;
  }
  if (!tls_->Feed({scratch.data(), received.size}).ok()) {
    Flush();  // the alert that tells the peer why
    return false;
  }
  desk_.Lend(input_);
  for (;;) {
    char* const at = input_.Reserve(kReadSize);
    const Result<std::size_t> plain = tls_->Read({at, input_.room()});
    if (!plain.ok()) {
      return false;
    }
    if (*plain == 0) {
      ended_ = ended_ || tls_->peer_closed();
      return true;
    }
    input_.Commit(*plain);
  }
}

// Sends what can be sent now. False if the connection is broken.
bool RespConnection::Flush() {
  if (tls_ && !Encrypt()) {
    return false;
  }
  resp::Buffer& bytes = tls_ ? cipher_ : output_;
  if (!Send(bytes)) {
    return false;
  }
  desk_.TakeBack(cipher_);
  if (!session_.waiting()) {
    desk_.TakeBack(output_);
  }
  return true;
}

bool RespConnection::Encrypt() {
  if (tls_->established() && !output_.empty()) {
    if (!tls_->Write(output_.view()).ok()) {
      return false;
    }
    output_.Clear();
  }
  constexpr std::size_t kPiece = 16 * 1024;
  desk_.Lend(cipher_);
  while (const std::size_t count = tls_->Drain({cipher_.Reserve(kPiece), kPiece})) {
    cipher_.Commit(count);
  }
  return true;
}

bool RespConnection::Send(resp::Buffer& bytes) {
  if (bytes.empty() || !writable_) {
    return true;
  }
  const std::ptrdiff_t sent = socket_.Send(bytes.view());
  if (sent < 0) {
    return false;
  }
  bytes.Consume(static_cast<std::size_t>(sent));
  writable_ = bytes.empty();
  return true;
}

void RespConnection::SetDeadline() {
  const RespOptions& options = desk_.options();
  if (tls_ && !tls_->established()) {
    // Counted from the start: bytes that trickle in do not earn more time.
    if (!std::exchange(timing_handshake_, true)) {
      reactor().timers().Set(*this, options.handshake_timeout);
    }
    return;
  }
  if (lingering_) {
    return;
  }
  reactor().timers().Set(*this, sent() ? options.idle_timeout : options.write_timeout);
}

void RespConnection::Resumed() {
  const boost::intrusive_ptr<RespConnection> alive = std::move(waiting_);
  CountAnswers();
  if (open_) {
    Run();
  }
}

void RespConnection::Drain() {
  draining_ = true;
  Run();
}

void RespConnection::Abort() { Close(); }

void RespConnection::OnDeadline() {
  if (session_.waiting()) {
    SetDeadline();  // the store has its own timeouts
    return;
  }
  Close();
}

void RespConnection::Close() {
  if (!open_) {
    return;
  }
  socket_.Close();
  reactor().timers().Cancel(*this);
  if (session_.waiting()) {
    waiting_ = open_;
  }
  // The last thing done here: it may end this object.
  open_.reset();
}

}  // namespace weir::service
