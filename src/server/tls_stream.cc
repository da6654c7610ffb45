#include "server/tls_stream.h"

#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <utility>
#include <vector>

namespace weir::server {
namespace asio = boost::asio;
using boost::system::error_code;

struct TlsStream::State : std::enable_shared_from_this<State> {
  State(Socket given, std::unique_ptr<TlsSession> tls)
      : socket(std::move(given)), session(std::move(tls)) {}

  // Gives what is there or reads on until there is something.
  void Read(std::span<char> plain, Handler handler) {
    const Result<std::size_t> count = session->Read(plain);
    if (!count.ok()) return Complete(std::move(handler), asio::error::connection_aborted, 0);
    if (*count > 0) return Complete(std::move(handler), {}, *count);
    if (session->peer_closed()) return Complete(std::move(handler), asio::error::eof, 0);
    socket.async_read_some(asio::buffer(incoming),
                           [self = shared_from_this(), plain, handler = std::move(handler)](
                               error_code error, std::size_t size) mutable {
                             if (error) return handler(error, 0);
                             self->Received(size, plain, std::move(handler));
                           });
  }

  void Received(std::size_t size, std::span<char> plain, Handler handler) {
    const bool failed = !session->Feed({incoming.data(), size}).ok();
    Drain();
    auto go_on = [self = shared_from_this(), plain, failed, handler](error_code error) {
      if (error || failed) return handler(error ? error : asio::error::connection_aborted, 0);
      self->Read(plain, handler);
    };
    // A handshake's answers must go out before the peer goes on.
    if (outgoing.empty()) return go_on({});
    Send(std::move(go_on));
  }

  void Write(std::string_view plain, Handler handler) {
    if (!session->established() || !session->Write(plain).ok()) {
      return Complete(std::move(handler), asio::error::connection_aborted, 0);
    }
    Drain();
    const std::size_t size = plain.size();
    Send([handler = std::move(handler), size](error_code error) {
      handler(error, error ? 0 : size);
    });
  }

  // Moves what the session wants to send behind what waits already.
  void Drain() {
    std::array<char, 16 * 1024> piece;
    while (const std::size_t size = session->Drain(piece)) outgoing.append(piece.data(), size);
  }

  // Sends all that is outgoing, then calls `done`. Who asks during a send is served by the next.
  void Send(std::function<void(error_code)> done) {
    waiting.push_back(std::move(done));
    if (!writing) SendNext();
  }

  void SendNext() {
    writing = true;
    sending.swap(outgoing);
    outgoing.clear();
    auto dones = std::exchange(waiting, {});
    asio::async_write(
        socket, asio::buffer(sending),
        [self = shared_from_this(), dones = std::move(dones)](error_code error, std::size_t) {
          self->writing = false;
          if (!self->waiting.empty()) self->SendNext();
          for (const auto& done : dones) done(error);
        });
  }

  // Never from within the call that began the operation, as asio promises its users.
  void Complete(Handler handler, error_code error, std::size_t size) {
    asio::post(socket.get_executor(), [self = shared_from_this(), handler = std::move(handler),
                                       error, size] { handler(error, size); });
  }

  Socket socket;
  std::unique_ptr<TlsSession> session;
  std::array<char, 16 * 1024> incoming;
  std::string outgoing;                                  // encrypted, not yet given to the socket
  std::string sending;                                   // being sent
  std::vector<std::function<void(error_code)>> waiting;  // for outgoing to be sent
  bool writing = false;
};

TlsStream::TlsStream(Socket socket, std::unique_ptr<TlsSession> session)
    : state_(std::make_shared<State>(std::move(socket), std::move(session))) {}
TlsStream::~TlsStream() = default;
TlsStream::TlsStream(TlsStream&&) noexcept = default;
TlsStream& TlsStream::operator=(TlsStream&&) noexcept = default;

Socket& TlsStream::next_layer() noexcept { return state_->socket; }
const TlsSession& TlsStream::session() const noexcept { return *state_->session; }

void TlsStream::Read(std::span<char> plain, Handler handler) {
  state_->Read(plain, std::move(handler));
}
void TlsStream::Close() {
  state_->session->Close();
  state_->Drain();
  if (!state_->outgoing.empty()) state_->Send([](error_code) {});
}
void TlsStream::Write(std::string_view plain, Handler handler) {
  state_->Write(plain, std::move(handler));
}

}  // namespace weir::server
