#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/connection.h"
#include "net/door_metrics.h"
#include "net/edge_socket.h"
#include "net/reactor.h"
#include "net/tls.h"
#include "protocol/grpc/health.h"
#include "protocol/grpc/session.h"
#include "service/grpc_door.h"

namespace weir::service {

/// One HTTP/2 connection: moves bytes between a socket and a session, through TLS if the door has
/// it. While a peer does not take its answers, nothing more is read from it.
///
/// Thread safety: belongs to its reactor.
class GrpcConnection final : public net::Connection,
                             private grpc::SessionObserver,
                             private net::EdgeSocket::Watcher {
 public:
  /// `tls` null: in the clear.
  GrpcConnection(net::Reactor& reactor, net::Socket socket, std::unique_ptr<net::TlsSession> tls,
                 const grpc::Services& services, grpc::Health& health, net::DoorMetrics& metrics,
                 const GrpcDoorOptions& options);

  void Start();
  /// Who is at the other end; before Start.
  void SetPeer(std::string address) { session_.SetPeer(std::move(address), {}); }
  void Drain() override;
  void Abort() override { Close(); }
  void OnDeadline() override;

 private:
  using Self = boost::intrusive_ptr<GrpcConnection>;

  void OnReadable() override;
  void OnWritable() override;
  void Read();
  void OnRead(std::size_t size);
  /// True if everything was taken and more may come.
  bool Take(std::string_view bytes);
  void Flush();
  void FillOut();
  void CountAnswers();
  bool Send();
  void OnOutput() override;
  void SetTimer();
  void Close();

  net::EdgeSocket socket_;
  const std::unique_ptr<net::TlsSession> tls_;
  grpc::Health& health_;
  net::DoorMetrics& metrics_;
  const GrpcDoorOptions& options_;
  grpc::Session session_;
  std::vector<char> in_;
  std::string out_;
  std::size_t sent_ = 0;  // of out_
  std::string plain_;     // with TLS: what is to be encrypted
  bool writing_ = false;  // the peer has yet to take what is in out_
  bool greeted_ = false;  // the peer has said something
  bool ended_ = false;    // nothing further is read; close once everything is written
  bool draining_ = false;
  bool closed_ = false;
  bool flush_posted_ = false;
  std::chrono::steady_clock::time_point read_at_;
  std::chrono::steady_clock::time_point wrote_at_;
};

}  // namespace weir::service
