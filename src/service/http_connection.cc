#include "service/http_connection.h"

#include <utility>

#include "service/http_service.h"

namespace weir::service {
namespace {

using Outcome = net::EdgeSocket::Outcome;

constexpr std::size_t kPiece = std::size_t{16} << 10U;

}  // namespace

HttpConnection::HttpConnection(HttpWorker& worker, net::Socket socket,
                               std::unique_ptr<net::TlsSession> tls, std::string remote)
    : Connection(worker.reactor()),
      worker_(worker),
      socket_(std::move(socket), *this, *this),
      tls_(std::move(tls)),
      session_(worker, *this, std::move(remote), tls_ != nullptr) {}

void HttpConnection::Start() {
  if (!socket_.is_open()) return;
  Expect(worker_.options().idle_timeout);
  socket_.AwaitReadable();
}

void HttpConnection::Drain() {
  // A client may be sending a request on an idle connection this very moment: it has this long.
  constexpr std::chrono::milliseconds kGrace{500};
  if (phase_ == Phase::kIdle) Expect(kGrace);
}

void HttpConnection::OnDeadline() {
  if (phase_ == Phase::kRequest && !session_.waiting()) {
    if (!held_.empty()) return Close();
    session_.TimeOut();
    const boost::intrusive_ptr<net::Connection> self(this);
    Write();
    return;
  }
  Close();
}

void HttpConnection::Resume() {
  if (phase_ != Phase::kClosed) GoOn();
}

void HttpConnection::OnReadable() {
  if (phase_ == Phase::kLinger) return Discard();
  // Otherwise timed out meanwhile, and the answer to that is being sent.
  if (phase_ != Phase::kIdle && phase_ != Phase::kRequest) return;
  if (tls_ != nullptr ? ReceiveTls() : Receive()) {
    GoOn();
  } else if (phase_ != Phase::kClosed) {
    socket_.AwaitReadable();
  }
}

// True if there is something to go on with: bytes or their end.
bool HttpConnection::Receive() {
  const net::EdgeSocket::Received received = socket_.Receive(session_.Space());
  switch (received.outcome) {
    case Outcome::kBytes:
      session_.Received(received.size);
      return true;
    case Outcome::kEnd:
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

bool HttpConnection::ReceiveTls() {
  std::array<char, kPiece> cipher;
  const net::EdgeSocket::Received received = socket_.Receive(cipher);
  if (received.outcome == Outcome::kNothing) return false;
  if (received.outcome == Outcome::kEnd) {
    session_.EndOfInput();
    return true;
  }
  if (received.outcome == Outcome::kBroken) {
    Close();
    return false;
  }
  const bool sound = tls_->Feed({cipher.data(), received.size}).ok();
  // The handshake's own words, or the alert that tells the peer what is wrong.
  Encrypt();
  if (!SendHeld() || !sound) {
    Close();
    return false;
  }
  return Decrypt();
}

bool HttpConnection::Decrypt() {
  bool any = false;
  while (!session_.finished()) {
    const Result<std::size_t> size = tls_->Read(session_.Space());
    if (!size.ok()) {
      Close();
      return false;
    }
    if (*size == 0) break;
    session_.Received(*size);
    any = true;
  }
  if (!tls_->peer_closed()) return any;
  session_.EndOfInput();
  return true;
}

/// Answers what has come in, sends it, and reads on. While older bytes wait for the socket, nothing
/// newer is made: OnWritable goes on from here.
void HttpConnection::GoOn() {
  if (!held_.empty()) {
    phase_ = Phase::kAnswer;
    return Expect(worker_.options().write_timeout);
  }
  session_.Advance();
  if (!session_.output().empty()) return Write();
  if (session_.waiting()) return Await();
  if (session_.finished()) return Linger();
  AwaitRequest();
}

void HttpConnection::Await() {
  phase_ = Phase::kAnswer;
  // Stores and handlers have time limits of their own.
  reactor().timers().Cancel(*this);
}

void HttpConnection::AwaitRequest() {
  if (session_.idle()) {
    if (phase_ == Phase::kRequest) session_.Rest();
    phase_ = Phase::kIdle;
    Expect(worker_.options().idle_timeout);
  } else if (phase_ != Phase::kRequest) {
    // Set once, so that a client cannot stretch it byte by byte.
    phase_ = Phase::kRequest;
    Expect(worker_.options().request_timeout);
  }
  socket_.AwaitReadable();
}

void HttpConnection::Write() {
  std::string& output = session_.output();
  if (tls_ == nullptr) {
    // Almost always the socket takes it all at once.
    const std::ptrdiff_t sent = socket_.Send(output);
    if (sent < 0) return Close();
    held_.assign(output, static_cast<std::size_t>(sent));
    output.clear();
  } else {
    if (!tls_->Write(output).ok()) return Close();
    output.clear();
    Encrypt();
    if (!SendHeld()) return Close();
  }
  if (held_.empty()) return OnWritten();
  phase_ = Phase::kAnswer;
  Expect(worker_.options().write_timeout);
  socket_.AwaitWritable();
}

void HttpConnection::Encrypt() {
  std::array<char, kPiece> cipher;
  while (const std::size_t size = tls_->Drain(cipher)) held_.append(cipher.data(), size);
}

// False if the connection is broken.
bool HttpConnection::SendHeld() {
  const std::ptrdiff_t sent = socket_.Send(std::string_view(held_).substr(sent_));
  if (sent < 0) return false;
  sent_ += static_cast<std::size_t>(sent);
  if (sent_ == held_.size()) {
    held_.clear();
    sent_ = 0;
  } else {
    socket_.AwaitWritable();
  }
  return true;
}

void HttpConnection::OnWritable() {
  if (held_.empty()) return;
  if (!SendHeld()) return Close();
  if (held_.empty() && phase_ == Phase::kAnswer && !session_.waiting()) OnWritten();
}

void HttpConnection::OnWritten() {
  // An answer may have come meanwhile, and requests may be left that waited for the output to go.
  if (!session_.output().empty()) return Write();
  if (session_.finished()) return Linger();
  if (session_.waiting()) return Await();
  if (!session_.idle()) return GoOn();
  AwaitRequest();
}

/// Ends our side and reads until the client ends its own: closing while bytes are unread would
/// reset the connection and could take the last answer with it.
void HttpConnection::Linger() {
  constexpr std::chrono::milliseconds kLinger{1000};
  if (tls_ != nullptr) {
    tls_->Close();
    Encrypt();
    if (!SendHeld()) return Close();
  }
  if (!socket_.ShutDownSend()) return Close();
  phase_ = Phase::kLinger;
  lingered_ = 0;
  Expect(kLinger);
  Discard();
}

void HttpConnection::Discard() {
  constexpr std::size_t kMost = std::size_t{16} << 20U;
  std::array<char, kPiece> unread;
  const net::EdgeSocket::Received received = socket_.Receive(unread);
  lingered_ += received.size;
  const bool gone = received.outcome == Outcome::kEnd || received.outcome == Outcome::kBroken;
  if (gone || lingered_ > kMost) return Close();
  socket_.AwaitReadable();
}

void HttpConnection::Close() {
  phase_ = Phase::kClosed;
  reactor().timers().Cancel(*this);
  socket_.Close();
}

}  // namespace weir::service
