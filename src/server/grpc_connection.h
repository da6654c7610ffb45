#pragma once

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "protocol/grpc/health.h"
#include "protocol/grpc/session.h"
#include "server/connection.h"
#include "server/grpc_door.h"
#include "server/reactor.h"

namespace weir::server {

/// One HTTP/2 connection: moves bytes between a stream (a socket, or TLS over one) and a session.
/// At most one read and one write are under way; while a peer does not take its answers, nothing
/// more is read from it.
///
/// Thread safety: belongs to its reactor.
template <typename Stream>
class GrpcConnection final : public Connection, private grpc::SessionObserver {
 public:
  GrpcConnection(Reactor& reactor, Stream stream, const grpc::Services& services,
                 grpc::Health& health, const GrpcDoorOptions& options)
      : Connection(reactor),
        stream_(std::move(stream)),
        health_(health),
        options_(options),
        session_(services, options.session, SystemClock::Get(), *this),
        in_(kFirstRead) {}

  void Start() {
    SetTimer();
    Flush();
    Read();
  }

  void Drain() override {
    if (std::exchange(draining_, true)) return;
    if (reactor().draining()) health_.SetServing(false);
    session_.Drain();
    SetTimer();
  }

  void Abort() override { Close(); }

  void OnDeadline() override {
    const Self self(this);  // Close may drop the last other reference
    const auto now = std::chrono::steady_clock::now();
    session_.Expire(SystemClock::Get().Now());
    if (writing_ && now - wrote_at_ >= options_.write_timeout) return Close();
    if (!greeted_) return Close();
    if (draining_) {
      // Unary calls are long done; what is still open are streams that would never end.
      session_.Drain();
      session_.EndCalls("the server is shutting down");
      Flush();
    } else if (session_.open_calls() == 0 && now - read_at_ >= options_.idle_timeout) {
      Drain();
    }
    SetTimer();
  }

 private:
  using Self = boost::intrusive_ptr<GrpcConnection>;

  static constexpr std::size_t kFirstRead = 8 << 10;
  static constexpr std::size_t kLargestRead = 64 << 10;
  static constexpr std::size_t kWriteSize = 64 << 10;

  void Read() {
    if (reading_ || closed_ || ended_) return;
    reading_ = true;
    stream_.async_read_some(
        boost::asio::buffer(in_),
        [self = Self(this)](const boost::system::error_code& error, std::size_t size) {
          self->reading_ = false;
          if (error) return self->Close();
          self->OnRead(size);
        });
  }

  void OnRead(std::size_t size) {
    if (closed_) return;
    if (!session_.Receive({in_.data(), size})) ended_ = true;
    greeted_ = true;
    read_at_ = std::chrono::steady_clock::now();
    if (size == in_.size() && size < kLargestRead) in_.resize(size * 2);
    SetTimer();
    Flush();
    // With a write under way the next read waits for it: that is what slows down a greedy peer.
    if (!writing_ || out_.size() < kWriteSize) Read();
  }

  void Flush() {
    if (writing_ || closed_) return;
    if (!session_.Fill(out_, kWriteSize)) ended_ = true;
    if (out_.empty()) {
      if (ended_) Close();
      return;
    }
    writing_ = true;
    wrote_at_ = std::chrono::steady_clock::now();
    Write(0);
  }

  void Write(std::size_t sent) {
    stream_.async_write_some(
        boost::asio::buffer(out_) + sent,
        [self = Self(this), sent](const boost::system::error_code& error, std::size_t size) {
          if (error) return self->Close();
          self->OnWritten(sent + size);
        });
  }

  void OnWritten(std::size_t sent) {
    if (closed_) return;
    if (sent < out_.size()) return Write(sent);
    out_.clear();
    writing_ = false;
    Flush();
    Read();
  }

  // The session has answers that arrived later. It must not be called back from here.
  void OnOutput() override {
    if (std::exchange(flush_posted_, true)) return;
    boost::asio::post(reactor().context(), [self = Self(this)] {
      self->flush_posted_ = false;
      self->SetTimer();
      self->Flush();
    });
  }

  /// The next moment at which anything could be due; OnDeadline finds out what.
  void SetTimer() {
    if (closed_) return;
    using std::chrono::milliseconds;
    milliseconds after = greeted_ ? options_.idle_timeout : options_.handshake_timeout;
    if (writing_) after = std::min(after, options_.write_timeout);
    if (draining_) after = std::min(after, options_.drain_grace);
    if (const auto deadline = session_.NextDeadline()) {
      const std::chrono::nanoseconds left(*deadline - SystemClock::Get().Now());
      after = std::min(after, std::chrono::ceil<milliseconds>(left));
    }
    reactor().timers().Set(*this, std::max(after, milliseconds(0)));
  }

  void Close() {
    if (std::exchange(closed_, true)) return;
    reactor().timers().Cancel(*this);
    boost::system::error_code ignored;
    stream_.lowest_layer().shutdown(boost::asio::socket_base::shutdown_both, ignored);
    stream_.lowest_layer().close(ignored);
  }

  Stream stream_;
  grpc::Health& health_;
  const GrpcDoorOptions& options_;
  grpc::Session session_;
  std::vector<char> in_;
  std::string out_;
  bool reading_ = false;
  bool writing_ = false;
  bool greeted_ = false;  // the peer has said something
  bool ended_ = false;    // nothing further is read; close once everything is written
  bool draining_ = false;
  bool closed_ = false;
  bool flush_posted_ = false;
  std::chrono::steady_clock::time_point read_at_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point wrote_at_ = read_at_;
};

}  // namespace weir::server
