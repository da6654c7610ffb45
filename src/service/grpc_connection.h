#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/connection.h"
#include "net/door_metrics.h"
#include "net/reactor.h"
#include "net/stream.h"
#include "net/transport.h"
#include "protocol/grpc/health.h"
#include "protocol/grpc/session.h"
#include "service/grpc_door.h"

namespace weir::service {

/// One HTTP/2 connection: a grpc::Session on a Stream. Kept alive by its socket; by itself, while
/// so much waits for a store that reading is paused.
///
/// Thread safety: belongs to its reactor.
class GrpcConnection final : public net::Connection,
                             private grpc::SessionObserver,
                             private net::Stream::Session {
 public:
  /// `transport`: plaintext or TLS.
  GrpcConnection(net::Reactor& reactor, std::unique_ptr<net::Transport> transport,
                 const grpc::Services& services, grpc::Health& health, net::DoorMetrics& metrics,
                 const GrpcDoorOptions& options);

  void Start() { stream_.Start(); }
  /// Sets who is at the other end; before Start.
  void SetPeer(std::string address) {
    session_.SetPeer(std::move(address), [this] { return transport_->peer_name(); });
  }
  void Drain() override;
  void Abort() override { stream_.Close(); }
  /// For calls and a drain; the stream has its own deadlines.
  void OnDeadline() override;

 private:
  std::span<char> Space() override { return in_; }
  void Received(std::size_t size) override;
  void EndOfInput() override { ended_ = true; }
  net::Stream::Next Advance() override;
  std::string_view Output() const override { return std::string_view(out_).substr(sent_); }
  void Sent(std::size_t size) override;
  net::Stream::Stage stage() const override;
  bool OnTimeout(net::Stream::Stage stage) override;
  void OnClosed() override;

  void OnOutput() override { stream_.WakeLater(); }
  void CountAnswers();
  void Expire();
  void EndCalls();
  void SetTimer();

  grpc::Health& health_;
  net::DoorMetrics& metrics_;
  const GrpcDoorOptions& options_;
  grpc::Session session_;
  std::vector<char> in_;
  std::string out_;
  std::size_t sent_ = 0;  // of out_
  const std::unique_ptr<net::Transport> transport_;
  net::Stream stream_;
  bool ended_ = false;    // the peer says no more
  bool broken_ = false;   // what it said cannot be gone on from
  bool overdue_ = false;  // calls whose time is over wait for a turn
  bool ending_ = false;   // calls that a drain ends do so, too
  bool draining_ = false;
  std::chrono::steady_clock::time_point end_calls_at_;  // while draining
  bool received_ = false;                               // since the last Advance
  std::chrono::steady_clock::time_point read_at_;
  boost::intrusive_ptr<GrpcConnection> full_;  // this, while nothing is read
};

}  // namespace weir::service
