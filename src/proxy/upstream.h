#pragma once

// Connections to the servers behind the proxy, kept alive between requests.

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/connection.h"
#include "net/listener.h"
#include "net/reactor.h"
#include "net/tls.h"
#include "net/transport.h"
#include "proxy/buffer.h"
#include "proxy/upstream_health.h"
#include "weir/result.h"

namespace weir::proxy {

/// A server that requests are forwarded to.
struct Upstream {
  net::Endpoint endpoint;
  std::string host;  ///< as it was written; its certificate must match
  bool tls = false;
  std::shared_ptr<UpstreamHealth> health;  ///< shared by the reactors
};

/// Resolves `http://host:port` or `https://host:port`. Looks up the name, so it may block: call it
/// at startup.
Result<Upstream> ResolveUpstream(std::string_view url);

/// The current user of an upstream connection.
///
/// Thread safety: called on the reactor's thread.
class UpstreamUser {
 public:
  virtual void OnUpstreamConnected(const Status& connected) = 0;
  /// Bytes in the buffer, the end, or broken.
  virtual void OnUpstreamRead(net::Transport::Outcome outcome) = 0;
  virtual void OnUpstreamWritable() = 0;

 protected:
  ~UpstreamUser() = default;
};

/// One connection to one upstream. A read is pending while it is idle in the pool, so a server
/// that closes it, or sends something unsolicited, is noticed before the connection is used again.
///
/// Thread safety: belongs to its reactor's thread, including the reference counting.
class UpstreamConnection final : public net::Counted, private net::Transport::Watcher {
 public:
  UpstreamConnection(net::Reactor& reactor, std::size_t target);

  /// `user` is notified of events until Detach; `keeper` is held for as long.
  void Attach(UpstreamUser& user, boost::intrusive_ptr<net::Connection> keeper) noexcept;
  void Detach() noexcept;

  /// `tls` is needed for upstreams that speak it.
  void Connect(const Upstream& upstream, const net::TlsClientContext* tls);
  /// Reads into `buffer`, unless a read is under way already.
  void Read();
  void Close() noexcept;
  /// Whether the server has neither closed it nor sent anything while it was unused; also checks
  /// for bytes that have just arrived.
  bool Usable();

  Buffer& buffer() noexcept { return buffer_; }
  /// Requires that it was connected.
  net::Transport& transport() noexcept { return *transport_; }
  bool open() const noexcept { return transport_ != nullptr && transport_->is_open(); }
  /// Nothing is left to send or to read.
  bool at_rest() const noexcept { return buffer_.empty() && transport_->flushed(); }
  std::size_t target() const noexcept { return target_; }

  bool reused = false;         ///< has served a request before
  std::size_t idle_since = 0;  ///< the pool's sweep count when it became idle

 private:
  using Ptr = boost::intrusive_ptr<UpstreamConnection>;

  void OnReadable() override;
  void OnWritable() override;
  void OnTurn() override { OnReadable(); }
  Status BeginTls(const std::string& host, const net::TlsClientContext* tls);
  void Connected(const Status& status);

  net::Reactor& reactor_;
  net::Socket socket_;  // until it is connected
  std::unique_ptr<net::Transport> transport_;
  Buffer buffer_;
  const std::size_t target_;
  UpstreamUser* user_ = nullptr;
  boost::intrusive_ptr<net::Connection> keeper_;
  bool reading_ = false;
  bool shaking_hands_ = false;
};

using UpstreamPtr = boost::intrusive_ptr<UpstreamConnection>;

struct PoolLimits {
  std::size_t idle_connections = 64;              ///< kept per upstream and reactor
  std::chrono::seconds idle_timeout{30};          ///< less than the upstream's own
  std::chrono::seconds retry_failed_upstream{5};  ///< the pause after a refused connection
};

/// One reactor's idle connections, and which upstream is next.
///
/// Thread safety: belongs to one reactor's thread.
class UpstreamPool final : private net::TimerWheel::Entry {
 public:
  UpstreamPool(net::Reactor& reactor, std::vector<Upstream> targets, PoolLimits limits);

  /// A connection to the next upstream in turn: an idle one, or one that is not connected yet
  /// (see open()). With `fresh` always the latter.
  UpstreamPtr Take(bool fresh);
  /// Returns a connection to the pool. Requires that it has no user and that its buffer is empty.
  void Return(UpstreamPtr connection);
  /// This upstream does not answer: the others take its turns for a while.
  void MarkDown(std::size_t target) noexcept;

  const Upstream& upstream(std::size_t target) const noexcept { return targets_[target].upstream; }
  std::size_t size() const noexcept { return targets_.size(); }
  /// Closes idle connections and detaches from the reactor: for the time between its end and its
  /// destruction.
  void Clear() noexcept;

 private:
  struct Target {
    Upstream upstream;
    std::vector<UpstreamPtr> idle;
    std::size_t down_until = 0;  // in sweeps
  };

  void OnDeadline() override;
  std::size_t NextTarget() noexcept;

  net::Reactor& reactor_;
  std::vector<Target> targets_;
  PoolLimits limits_;
  std::size_t next_ = 0;
  std::size_t sweeps_ = 0;
};

}  // namespace weir::proxy
