#include "net/tls_transport.h"

#include <array>
#include <utility>

#include "net/edge_socket.h"
#include "telemetry/log.h"

namespace weir::net {
namespace {

constexpr std::size_t kRecord = std::size_t{16} << 10U;
/// How much is encrypted ahead for a peer that does not read. The rest waits with the sender, where
/// it is accounted for.
constexpr std::size_t kAhead = std::size_t{64} << 10U;
/// Memory that an idle connection keeps for what is sent next.
constexpr std::size_t kKeptRecords = std::size_t{32} << 10U;

}  // namespace

std::unique_ptr<Transport> Carry(Socket socket, Reactor& reactor, TlsContext* tls) {
  auto carrier = std::make_unique<EdgeSocket>(std::move(socket), reactor);
  if (tls == nullptr) return carrier;
  Result<std::unique_ptr<TlsSession>> session = tls->NewSession();
  if (session.ok()) return std::make_unique<TlsTransport>(std::move(carrier), std::move(*session));
  telemetry::Log(telemetry::Level::kError, "cannot create a TLS session",
                 {{"error", std::string_view(session.error().message)}});
  return nullptr;
}

TlsTransport::TlsTransport(std::unique_ptr<Transport> carrier, std::unique_ptr<TlsSession> tls)
    : carrier_(std::move(carrier)), tls_(std::move(tls)) {}

void TlsTransport::Attach(Counted& owner, Transport::Watcher& watcher) noexcept {
  watcher_ = &watcher;
  carrier_->Attach(owner, *this);
  // A client speaks first.
  if (tls_->client() && !tls_->established()) broken_ = !Feed({}) || !Flush();
}

Transport::Received TlsTransport::Receive(std::span<char> space) noexcept {
  left_ = false;
  if (broken_) return Broken();
  std::size_t size = 0;
  if (!Decrypt(space, size)) return Broken();
  if (size > 0) return {Outcome::kBytes, size};
  if (tls_->peer_closed()) return {Outcome::kEnd};
  std::array<char, kRecord> cipher;
  const Received received = carrier_->Receive(cipher);
  // An end without a TLS close alert may be forged by a third party: a client that reads an answer
  // until its end must not take it for complete.
  if (received.outcome == Outcome::kEnd && tls_->client()) return Broken();
  if (received.outcome != Outcome::kBytes) return received;
  if (!Feed({cipher.data(), received.size}) || !Flush()) return Broken();
  if (!Decrypt(space, size)) return Broken();
  if (size > 0) return {Outcome::kBytes, size};
  return {tls_->peer_closed() ? Outcome::kEnd : Outcome::kNothing};
}

bool TlsTransport::Feed(std::string_view cipher) {
  const Status fed = tls_->Feed(cipher);
  if (!fed.ok()) failure_ = fed.error().message;
  return fed.ok();
}

std::string TlsTransport::failure() const {
  return failure_.empty() ? Transport::failure() : failure_;
}

/// Decrypts as much as fits and is complete. False if that failed and nothing was decrypted before.
bool TlsTransport::Decrypt(std::span<char> space, std::size_t& size) {
  while (size < space.size()) {
    const Result<std::size_t> read = tls_->Read(space.subspan(size));
    if (!read.ok()) {
      broken_ = left_ = true;
      return size > 0;
    }
    if (*read == 0) break;
    size += *read;
  }
  left_ = size == space.size() || (size > 0 && tls_->peer_closed());
  return true;
}

std::ptrdiff_t TlsTransport::Send(std::string_view bytes, std::string_view rest) noexcept {
  if (!tls_->established()) return 0;
  if (broken_ || !Flush()) return -1;
  std::size_t sent = 0;
  while (cipher_.empty() && bytes.size() + rest.size() > 0) {
    const std::string_view first = bytes.substr(0, kAhead);
    const std::string_view second = rest.substr(0, kAhead - first.size());
    if (!tls_->Write(first).ok() || !tls_->Write(second).ok() || !Flush()) return -1;
    bytes.remove_prefix(first.size());
    rest.remove_prefix(second.size());
    sent += first.size() + second.size();
  }
  return static_cast<std::ptrdiff_t>(sent);
}

/// Sends what TLS has produced. False if the connection is broken.
bool TlsTransport::Flush() {
  std::array<char, kRecord> piece;
  while (const std::size_t size = tls_->Drain(piece)) cipher_.append(piece.data(), size);
  if (cipher_.empty()) return true;
  const std::ptrdiff_t sent = carrier_->Send(std::string_view(cipher_).substr(sent_));
  if (sent < 0) return false;
  sent_ += static_cast<std::size_t>(sent);
  if (sent_ < cipher_.size()) {
    // Waiting would hold the owner, which may be about to be destroyed.
    if (!closing_) carrier_->AwaitWritable();
    return true;
  }
  if (cipher_.capacity() > kKeptRecords) cipher_ = std::string();
  cipher_.clear();
  sent_ = 0;
  return true;
}

/// Sends the alert that tells the peer what is wrong, if it takes it.
Transport::Received TlsTransport::Broken() noexcept {
  if (!std::exchange(broken_, true)) static_cast<void>(Flush());
  return {Outcome::kBroken};
}

void TlsTransport::AwaitReadable() {
  if (!left_) return carrier_->AwaitReadable();
  await_readable_ = true;
  carrier_->AwaitTurn();
}

void TlsTransport::AwaitWritable() {
  await_writable_ = true;
  if (cipher_.empty()) {
    carrier_->AwaitTurn();
  } else {
    carrier_->AwaitWritable();
  }
}

void TlsTransport::AwaitTurn() {
  await_turn_ = true;
  carrier_->AwaitTurn();
}

void TlsTransport::AwaitSpare() {
  await_turn_ = true;
  carrier_->AwaitSpare();
}

void TlsTransport::OnReadable() {
  if (tls_->established()) return watcher_->OnReadable();
  await_readable_ = true;
  carrier_->AwaitTurn();
}

void TlsTransport::OnWritable() {
  if (!Flush()) {
    broken_ = true;
  } else if (!cipher_.empty()) {
    return;  // Flush waits again
  } else if (shut_down_) {
    static_cast<void>(carrier_->ShutDownSend());
  }
  if (std::exchange(await_writable_, false)) watcher_->OnWritable();
}

void TlsTransport::OnTurn() {
  const bool readable = std::exchange(await_readable_, false);
  const bool writable = cipher_.empty() && std::exchange(await_writable_, false);
  const bool turn = std::exchange(await_turn_, false);
  if (readable) watcher_->OnReadable();
  if (writable && is_open()) watcher_->OnWritable();
  if (turn && is_open()) watcher_->OnTurn();
}

bool TlsTransport::ShutDownSend() noexcept {
  tls_->Close();
  if (!Flush()) return false;
  shut_down_ = true;
  return cipher_.empty() ? carrier_->ShutDownSend() : true;
}

/// Closes without the alert that says that everything was sent.
void TlsTransport::Reset() noexcept {
  closing_ = true;
  carrier_->Reset();
}

void TlsTransport::Close() noexcept {
  if (!is_open()) return;
  closing_ = true;
  if (!broken_ && !shut_down_) {
    tls_->Close();
    static_cast<void>(Flush());
  }
  carrier_->Close();
}

}  // namespace weir::net
