#include "service/grpc_connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <utility>

namespace weir::service {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kFirstRead = 8 << 10;
constexpr std::size_t kLargestRead = 64 << 10;
constexpr std::size_t kWriteSize = 64 << 10;
constexpr std::size_t kKeptCapacity = 256 << 10;

}  // namespace

GrpcConnection::GrpcConnection(net::Reactor& reactor, net::Socket socket,
                               std::unique_ptr<net::TlsSession> tls, const grpc::Services& services,
                               grpc::Health& health, net::DoorMetrics& metrics,
                               const GrpcDoorOptions& options)
    : Connection(reactor),
      socket_(std::move(socket), *this, *this),
      tls_(std::move(tls)),
      health_(health),
      metrics_(metrics),
      options_(options),
      session_(services, options.session, SystemClock::Get(), *this),
      in_(kFirstRead),
      read_at_(steady_clock::now()),
      wrote_at_(read_at_) {}

void GrpcConnection::Start() {
  if (!socket_.is_open()) return;
  SetTimer();
  Flush();
  Read();
}

void GrpcConnection::Drain() {
  if (std::exchange(draining_, true)) return;
  if (reactor().draining()) health_.SetServing(false);
  session_.Drain();
  SetTimer();
}

void GrpcConnection::OnDeadline() {
  const Self self(this);  // Close may drop the last other reference
  const auto now = steady_clock::now();
  session_.Expire(SystemClock::Get().Now());
  if (writing_ && now - wrote_at_ >= options_.write_timeout) return Close();
  if (!greeted_) return Close();
  if (draining_) {
    // Unary calls are long done; what is still open are streams that would never end.
    session_.Drain();
    session_.EndCalls("the server is shutting down");
  } else if (session_.open_calls() == 0 && now - read_at_ >= options_.idle_timeout) {
    Drain();
  }
  SetTimer();
}

void GrpcConnection::Read() {
  if (!closed_ && !ended_) socket_.AwaitReadable();
}

void GrpcConnection::OnReadable() {
  if (ended_) return;
  const net::EdgeSocket::Received received = socket_.Receive(in_);
  if (received.outcome == net::EdgeSocket::Outcome::kNothing) return Read();
  if (received.outcome != net::EdgeSocket::Outcome::kBytes) return Close();
  OnRead(received.size);
}

void GrpcConnection::OnRead(std::size_t size) {
  read_at_ = steady_clock::now();
  if (!Take({in_.data(), size})) ended_ = true;
  if (size == in_.size() && size < kLargestRead) in_.resize(size * 2);
  SetTimer();
  Flush();
  // With a write under way the next read waits for it: that is what slows down a greedy peer.
  if (!writing_ || out_.size() < kWriteSize) Read();
}

bool GrpcConnection::Take(std::string_view bytes) {
  if (!tls_) {
    greeted_ = true;
    return session_.Receive(bytes);
  }
  if (!tls_->Feed(bytes).ok()) return false;
  std::array<char, 16 << 10> plain;
  for (;;) {
    const Result<std::size_t> size = tls_->Read(plain);
    if (!size.ok()) return false;
    if (*size == 0) return !tls_->peer_closed();
    greeted_ = true;
    if (!session_.Receive({plain.data(), *size})) return false;
  }
}

void GrpcConnection::CountAnswers() {
  const std::uint64_t answered = session_.TakeAnswered();
  if (answered != 0) metrics_.Answered((steady_clock::now() - read_at_).count(), answered);
}

void GrpcConnection::Flush() {
  CountAnswers();
  while (!writing_ && !closed_) {
    FillOut();
    if (out_.empty()) {
      if (ended_) Close();
      return;
    }
    if (!Send()) return Close();
  }
}

void GrpcConnection::FillOut() {
  if (!tls_) {
    if (!session_.Fill(out_, kWriteSize)) ended_ = true;
    return;
  }
  // Before the handshake is done, only TLS itself has something to say.
  if (tls_->established()) {
    plain_.clear();
    const bool open = session_.Fill(plain_, kWriteSize);
    if (!plain_.empty() && !tls_->Write(plain_).ok()) ended_ = true;
    if (!open && !std::exchange(ended_, true)) tls_->Close();
  }
  std::array<char, 16 << 10> cipher;
  while (const std::size_t size = tls_->Drain(cipher)) out_.append(cipher.data(), size);
}

// Sends of out_ what the socket takes. False if the connection is broken.
bool GrpcConnection::Send() {
  const std::ptrdiff_t sent = socket_.Send(std::string_view(out_).substr(sent_));
  if (sent < 0) return false;
  sent_ += static_cast<std::size_t>(sent);
  if (sent_ < out_.size()) {
    if (sent > 0 || !writing_) wrote_at_ = steady_clock::now();
    writing_ = true;
    socket_.AwaitWritable();
    return true;
  }
  if (out_.capacity() > kKeptCapacity) out_ = std::string();
  out_.clear();
  sent_ = 0;
  writing_ = false;
  return true;
}

void GrpcConnection::OnWritable() {
  if (!writing_) return;
  if (!Send()) return Close();
  if (writing_) return;
  SetTimer();
  Flush();
  Read();
}

/// The session has answers that became known later. It must not be called back from here.
void GrpcConnection::OnOutput() {
  if (std::exchange(flush_posted_, true)) return;
  boost::asio::post(reactor().context(), [self = Self(this)] {
    self->flush_posted_ = false;
    self->SetTimer();
    self->Flush();
  });
}

/// The next moment at which anything could be due; OnDeadline finds out what.
void GrpcConnection::SetTimer() {
  if (closed_) return;
  milliseconds after = greeted_ ? options_.idle_timeout : options_.handshake_timeout;
  if (writing_) after = std::min(after, options_.write_timeout);
  if (draining_) after = std::min(after, options_.drain_grace);
  if (const auto deadline = session_.NextDeadline()) {
    const std::chrono::nanoseconds left(*deadline - SystemClock::Get().Now());
    after = std::min(after, std::chrono::ceil<milliseconds>(left));
  }
  reactor().timers().Set(*this, std::max(after, milliseconds(0)));
}

void GrpcConnection::Close() {
  if (std::exchange(closed_, true)) return;
  reactor().timers().Cancel(*this);
  socket_.Close();
}

}  // namespace weir::service
