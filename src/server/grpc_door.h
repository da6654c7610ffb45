#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "limiter/limiter.h"
#include "protocol/grpc/rls.h"
#include "protocol/grpc/session.h"
#include "server/reactor.h"

namespace weir::server {

struct GrpcDoorOptions {
  grpc::SessionOptions session;
  grpc::RlsOptions rls;
  /// For the peer to say that it speaks HTTP/2.
  std::chrono::milliseconds handshake_timeout{10'000};
  /// A peer that takes none of its answers for this long is cut off.
  std::chrono::milliseconds write_timeout{30'000};
  /// A connection without calls is asked to go after this.
  std::chrono::milliseconds idle_timeout{600'000};
  /// When the service shuts down, streams that have not ended by then are ended.
  std::chrono::milliseconds drain_grace{1'000};
};

/// gRPC over HTTP/2, in the clear with prior knowledge (h2c).
///
/// Thread safety: as Door; everything behind it is kept per reactor.
class GrpcDoor : public Door {
 public:
  /// One limiter for each reactor, in their order; they must outlive the door.
  GrpcDoor(const GrpcDoorOptions& options, std::vector<limiter::Limiter*> limiters);
  ~GrpcDoor() override;

  std::string_view name() const noexcept override { return "grpc"; }
  void Accept(Reactor& reactor, Socket socket) override;

 private:
  struct Desk;

  const GrpcDoorOptions options_;
  std::vector<std::unique_ptr<Desk>> desks_;  // one per reactor
};

}  // namespace weir::server
