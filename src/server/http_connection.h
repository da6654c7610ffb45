#pragma once

// Moves bytes between a stream and an HttpSession. A template, so that a TLS stream can stand where
// the plain socket does.

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <type_traits>
#include <utility>

#include "server/connection.h"
#include "server/http_session.h"

namespace weir::server {

/// One client's connection. `Stream` is Socket, or wraps one and gives it as next_layer().
///
/// Thread safety: belongs to its reactor's thread.
template <typename Stream>
class HttpConnection final : public Connection, private HttpSession::Transport {
 public:
  static constexpr bool kPlain = std::is_same_v<Stream, Socket>;

  HttpConnection(HttpWorker& worker, Stream stream, std::string remote)
      : Connection(worker.reactor()),
        worker_(worker),
        stream_(std::move(stream)),
        session_(worker, *this, std::move(remote), !kPlain) {}

  /// Begins to serve; the connection keeps itself alive from now on.
  void Start() {
    if constexpr (kPlain) {
      boost::system::error_code error;
      stream_.non_blocking(true, error);
    }
    Expect(worker_.options().idle_timeout);
    Read();
  }

  void Drain() override {
    // A client may be sending a request on an idle connection this very moment: it has this long.
    constexpr std::chrono::milliseconds kGrace{500};
    if (phase_ == Phase::kIdle) Expect(kGrace);
  }

  void Abort() override { Close(); }

  void OnDeadline() override {
    if (phase_ == Phase::kRequest && !session_.waiting()) {
      session_.TimeOut();
      boost::intrusive_ptr<Connection> self(this);
      Write();
      return;
    }
    Close();
  }

 private:
  // What the client is expected to do, and so which time limit runs.
  enum class Phase { kIdle, kRequest, kAnswer, kLinger, kClosed };

  boost::intrusive_ptr<Connection> Self() override { return this; }
  boost::intrusive_ptr<HttpConnection> Me() { return this; }

  void Resume() override {
    if (phase_ == Phase::kClosed) return;
    GoOn();
  }

  void Expect(std::chrono::milliseconds time) { reactor().timers().Set(*this, time); }

  void Read() {
    const std::span<char> space = session_.Space();
    stream_.async_read_some(
        boost::asio::buffer(space.data(), space.size()),
        [self = Me()](boost::system::error_code error, std::size_t n) { self->OnRead(error, n); });
  }

  void OnRead(const boost::system::error_code& error, std::size_t n) {
    // Otherwise closed, or timed out meanwhile and the answer to that is being sent.
    if (phase_ != Phase::kIdle && phase_ != Phase::kRequest) return;
    if (error == boost::asio::error::eof) {
      session_.EndOfInput();
    } else if (error) {
      return Close();
    } else {
      session_.Received(n);
    }
    GoOn();
  }

  /// Answers what has come in, sends it, and reads on.
  void GoOn() {
    session_.Advance();
    if (!session_.output().empty()) return Write();
    if (session_.waiting()) return Await();
    if (session_.finished()) return Linger();
    AwaitRequest();
    Read();
  }

  void Await() {
    phase_ = Phase::kAnswer;
    // Stores and handlers have time limits of their own.
    reactor().timers().Cancel(*this);
  }

  void AwaitRequest() {
    if (session_.idle()) {
      if (phase_ == Phase::kRequest) session_.Rest();
      phase_ = Phase::kIdle;
      Expect(worker_.options().idle_timeout);
    } else if (phase_ != Phase::kRequest) {
      // Set once, so that a client cannot stretch it byte by byte.
      phase_ = Phase::kRequest;
      Expect(worker_.options().request_timeout);
    }
  }

  void Write() {
    std::string& output = session_.output();
    std::size_t sent = 0;
    if constexpr (kPlain) {
      // Almost always the socket takes it all at once, which saves a turn of the event loop.
      boost::system::error_code error;
      sent = stream_.write_some(boost::asio::buffer(output), error);
      if (error && error != boost::asio::error::would_block) return Close();
      if (sent == output.size()) return OnWritten();
    }
    phase_ = Phase::kAnswer;
    Expect(worker_.options().write_timeout);
    sending_.assign(output, sent);
    output.clear();
    boost::asio::async_write(stream_, boost::asio::buffer(sending_),
                             [self = Me()](boost::system::error_code error, std::size_t) {
                               if (self->phase_ == Phase::kClosed) return;
                               if (error) return self->Close();
                               self->sending_.clear();
                               self->OnWritten();
                             });
  }

  void OnWritten() {
    session_.output().clear();
    if (session_.finished()) return Linger();
    if (session_.waiting()) return Await();
    // Requests may be left that waited for the output to go.
    if (!session_.idle()) {
      session_.Advance();
      if (!session_.output().empty()) return Write();
      if (session_.waiting()) return Await();
      if (session_.finished()) return Linger();
    }
    AwaitRequest();
    Read();
  }

  /// Ends our side and reads until the client ends its own: closing while bytes are unread would
  /// reset the connection and could take the last answer with it.
  void Linger() {
    constexpr std::chrono::milliseconds kLinger{1000};
    boost::system::error_code error;
    socket().shutdown(Socket::shutdown_send, error);
    if (error) return Close();
    phase_ = Phase::kLinger;
    lingered_ = 0;
    Expect(kLinger);
    Discard();
  }

  void Discard() {
    constexpr std::size_t kMost = std::size_t{16} << 20U;
    socket().async_read_some(boost::asio::buffer(discarded_),
                             [self = Me()](boost::system::error_code error, std::size_t n) {
                               if (self->phase_ == Phase::kClosed) return;
                               self->lingered_ += n;
                               if (error || self->lingered_ > kMost) return self->Close();
                               self->Discard();
                             });
  }

  void Close() {
    phase_ = Phase::kClosed;
    reactor().timers().Cancel(*this);
    boost::system::error_code ignored;
    socket().close(ignored);
  }

  Socket& socket() {
    if constexpr (kPlain) {
      return stream_;
    } else {
      return stream_.next_layer();
    }
  }

  HttpWorker& worker_;
  Stream stream_;
  HttpSession session_;
  std::string sending_;
  std::size_t lingered_ = 0;
  Phase phase_ = Phase::kIdle;
  static inline thread_local std::array<char, 16384> discarded_;
};

}  // namespace weir::server
