#include "server/resp_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "server/reactor.h"

namespace weir::server {
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

RespConnection::RespConnection(Reactor& reactor, RespDesk& desk, int fd, std::string peer,
                               std::string local, std::unique_ptr<TlsSession> tls)
    : Connection(reactor),
      desk_(desk),
      fd_(fd),
      tls_(std::move(tls)),
      session_(desk.shop(), std::move(peer), std::move(local), [this] { Resumed(); }) {}

RespConnection::~RespConnection() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

void RespConnection::Start() {
  open_.reset(this);
  SetDeadline();
  if (!desk_.poller().Add(fd_, *this).ok()) {
    Close();
  }
}

void RespConnection::OnReady(std::uint32_t events) {
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    hung_up_ = true;
  }
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    readable_ = true;
  }
  if ((events & EPOLLOUT) != 0) {
    writable_ = true;
  }
  // Replies wait for the end of the round: a client that shares several connections is then woken
  // once and finds all its replies, instead of being woken for each.
  if (!session_.waiting() && !lingering_ && sent() && !unfinished_ && readable_ && !ended_) {
    if (!Receive()) {
      Close();
      return;
    }
    Process();
  }
  desk_.poller().AtRoundEnd(*this);
}

void RespConnection::Run() {
  const boost::intrusive_ptr<RespConnection> alive(this);
  int rounds = 0;
  while (open_ && Step()) {
    if (++rounds == kFairRounds) {
      desk_.poller().Defer(*this);
      return;
    }
  }
  if (open_) {
    SetDeadline();
  }
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
  ::shutdown(fd_, SHUT_WR);
  reactor().timers().Set(*this, kLinger);
  Linger();
}

void RespConnection::Linger() {
  std::vector<char>& scratch = desk_.scratch();
  ssize_t count = 0;
  do {
    count = ::recv(fd_, scratch.data(), scratch.size(), MSG_DONTWAIT);
  } while (count > 0);
  if (count == 0 || errno != EAGAIN) {
    Close();
  }
}

void RespConnection::Process() {
  unfinished_ = false;
  if (!input_.empty() && !session_.closing()) {
    desk_.Lend(output_);
    input_.Consume(session_.Feed(input_.view(), output_));
    unfinished_ = session_.waiting() || output_.size() >= resp::Session::kMaxOutput;
  }
  if (!session_.waiting()) {
    desk_.TakeBack(input_);
  }
}

// False if the connection is broken.
bool RespConnection::Receive() {
  if (tls_) {
    return ReceiveTls();
  }
  desk_.Lend(input_);
  char* const at = input_.Reserve(kReadSize);
  const std::size_t room = input_.room();
  const ssize_t count = ::recv(fd_, at, room, MSG_DONTWAIT);
  if (count > 0) {
    input_.Commit(static_cast<std::size_t>(count));
    // A short read has emptied the socket; what comes later is a new event. Not so behind a
    // hang-up, which was told already.
    readable_ = static_cast<std::size_t>(count) == room || hung_up_;
    return true;
  }
  readable_ = false;
  ended_ = count == 0;
  return count == 0 || errno == EAGAIN || errno == EINTR;
}

bool RespConnection::ReceiveTls() {
  std::vector<char>& scratch = desk_.scratch();
  const ssize_t count = ::recv(fd_, scratch.data(), scratch.size(), MSG_DONTWAIT);
  if (count <= 0) {
    readable_ = false;
    ended_ = count == 0;
    return count == 0 || errno == EAGAIN || errno == EINTR;
  }
  readable_ = static_cast<std::size_t>(count) == scratch.size() || hung_up_;
  if (!tls_->Feed({scratch.data(), static_cast<std::size_t>(count)}).ok()) {
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
  while (!bytes.empty() && writable_) {
    const std::string_view view = bytes.view();
    const ssize_t count = ::send(fd_, view.data(), view.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.Consume(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      writable_ = false;
    } else if (errno != EINTR) {
      return false;
    }
  }
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
  desk_.poller().Remove(fd_, *this);
  ::close(fd_);
  fd_ = -1;
  reactor().timers().Cancel(*this);
  if (session_.waiting()) {
    waiting_ = open_;
  }
  // The last thing done here: it may end this object.
  open_.reset();
}

}  // namespace weir::server
