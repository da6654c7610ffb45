#pragma once

// A Redis client's connection: a resp::Session on a Stream. Reads take whatever has arrived; all
// replies to it leave in one send. Buffers belong to the reactor and are lent to a connection only
// while it has something unfinished, so an idle connection costs a few hundred bytes.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/memory_budget.h"
#include "net/connection.h"
#include "net/door_metrics.h"
#include "net/stream.h"
#include "net/transport.h"
#include "protocol/resp/buffer.h"
#include "protocol/resp/service.h"
#include "protocol/resp/session.h"
#include "service/resp_door.h"
#include "weir/clock.h"

namespace weir::service {

/// What the Redis connections of one reactor share. Thread safety: belongs to the reactor's thread.
class RespWorker {
 public:
  RespWorker(const RespOptions& options, resp::Service& service, limiter::Limiter& limiter,
             net::DoorMetrics& metrics)
      : options_(options), worker_(service, limiter), metrics_(metrics) {}

  const RespOptions& options() const noexcept { return options_; }
  resp::Worker& worker() noexcept { return worker_; }
  net::DoorMetrics& metrics() noexcept { return metrics_; }

  /// Lends memory to an empty buffer, and takes it back from an empty one.
  void Lend(resp::Buffer& buffer);
  void TakeBack(resp::Buffer& buffer);

  /// What connections hold in buffers.
  MemoryBudget& buffered() noexcept { return buffered_; }

 private:
  static constexpr std::size_t kSpareBuffers = 256;
  /// Two of them, for input and replies, are no more than a connection may always have.
  static constexpr std::size_t kKeepCapacity = MemoryBudget::kLeast / 2;
  static constexpr std::size_t kBufferBudget = std::size_t{64} << 20U;

  const RespOptions& options_;
  resp::Worker worker_;
  net::DoorMetrics& metrics_;
  std::vector<resp::Buffer> spare_;
  MemoryBudget buffered_{kBufferBudget};
};

/// Kept alive by what it waits for: its socket, or the store.
///
/// Thread safety: as Connection.
class RespConnection final : public net::Connection, private net::Stream::Session {
 public:
  RespConnection(net::Reactor& reactor, RespWorker& worker,
                 std::unique_ptr<net::Transport> transport, std::string peer, std::string local);
  ~RespConnection() override;

  void Start() { stream_.Start(); }
  void Drain() override;
  void Abort() override { stream_.Close(); }
  void OnDeadline() override {}

 private:
  std::span<char> Space() override;
  void Received(std::size_t size) override {
    if (!std::exchange(named_, true)) session_.LogInBySubject(transport_->peer_name());
    input_.Commit(size);
  }
  void EndOfInput() override { ended_ = true; }
  net::Stream::Next Advance() override;
  std::string_view Output() const override { return output_.view(); }
  void Sent(std::size_t size) override;
  net::Stream::Stage stage() const override;
  bool OnTimeout(net::Stream::Stage) override { return true; }

  void Feed();
  bool Account();
  void CountAnswers();
  void Resumed();

  RespWorker& worker_;
  resp::Buffer input_;
  resp::Buffer output_;
  resp::Session session_;
  const std::unique_ptr<net::Transport> transport_;
  net::Stream stream_;
  std::size_t accounted_ = 0;
  Nanos asked_at_ = 0;  // when the limiter was last asked
  bool named_ = false;  // the peer's certificate has been read
  bool ended_ = false;  // nothing more can be read
  bool draining_ = false;
  boost::intrusive_ptr<RespConnection> waiting_;  // this, while the store works for it
};

}  // namespace weir::service
