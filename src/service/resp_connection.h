#pragma once

// A Redis client's connection: recv, Session, send. Reads take whatever has come; all replies to it
// leave in one send. Buffers belong to the reactor and are lent to a connection only while it has
// something unfinished, so an idle connection costs a few hundred bytes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/connection.h"
#include "net/door_metrics.h"
#include "net/edge_socket.h"
#include "net/tls.h"
#include "protocol/resp/buffer.h"
#include "protocol/resp/service.h"
#include "protocol/resp/session.h"
#include "service/resp_door.h"
#include "weir/clock.h"

namespace weir::service {

/// What the Redis connections of one reactor share. Thread safety: belongs to the reactor's thread.
class RespDesk {
 public:
  RespDesk(const RespOptions& options, resp::Service& service, limiter::Limiter& limiter,
           net::DoorMetrics& metrics)
      : options_(options), shop_(service, limiter), metrics_(metrics), scratch_(kScratch) {}

  const RespOptions& options() const noexcept { return options_; }
  resp::Shop& shop() noexcept { return shop_; }
  net::DoorMetrics& metrics() noexcept { return metrics_; }
  /// Memory for the moment, for bytes on their way to or from TLS.
  std::vector<char>& scratch() noexcept { return scratch_; }

  /// Lends memory to an empty buffer, and takes it back from an empty one.
  void Lend(resp::Buffer& buffer);
  void TakeBack(resp::Buffer& buffer);

 private:
  static constexpr std::size_t kScratch = 64 * 1024;
  static constexpr std::size_t kSpareBuffers = 256;
  static constexpr std::size_t kKeepCapacity = 256 * 1024;

  const RespOptions& options_;
  resp::Shop shop_;
  net::DoorMetrics& metrics_;
  std::vector<char> scratch_;
  std::vector<resp::Buffer> spare_;
};

/// Thread safety: as Connection. Owns itself from Start until it is closed and nothing is under
/// way.
class RespConnection final : public net::Connection, private net::EdgeSocket::Watcher {
 public:
  RespConnection(net::Reactor& reactor, RespDesk& desk, net::Socket socket, std::string peer,
                 std::string local, std::unique_ptr<net::TlsSession> tls);
  ~RespConnection() override;

  void Start();
  void Drain() override;
  void Abort() override;
  void OnDeadline() override;

 private:
  void OnReadable() override;
  void OnWritable() override;
  void Run();
  bool Step();
  void Finish();
  void Linger();
  void Process();
  bool Receive();
  bool ReceiveTls();
  bool Note(const net::EdgeSocket::Received& received);
  bool Flush();
  bool Encrypt();
  bool Send(resp::Buffer& bytes);
  void GoOnLater();
  void CountAnswers();
  void SetDeadline();
  void Resumed();
  void Close();
  bool sent() const noexcept { return output_.empty() && cipher_.empty(); }

  RespDesk& desk_;
  net::EdgeSocket socket_;
  std::unique_ptr<net::TlsSession> tls_;
  resp::Buffer input_;
  resp::Buffer output_;
  resp::Buffer cipher_;  // TLS: what of the output is encrypted and not yet sent
  resp::Session session_;
  Nanos asked_at_ = 0;  // when the limiter was last asked
  bool readable_ = false;
  bool writable_ = true;
  bool ended_ = false;       // nothing more can be read
  bool unfinished_ = false;  // complete commands may be left in input_
  bool draining_ = false;
  bool lingering_ = false;  // done, waiting for the peer to close
  bool timing_handshake_ = false;
  boost::intrusive_ptr<RespConnection> open_;     // this, until closed
  boost::intrusive_ptr<RespConnection> waiting_;  // this, while the store works for it
};

}  // namespace weir::service
