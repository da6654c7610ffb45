#pragma once

// Connections to the servers behind the proxy, kept alive between requests.

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "net/connection.h"
#include "net/listener.h"
#include "net/reactor.h"
#include "proxy/buffer.h"
#include "weir/result.h"

namespace weir::proxy {

/// Where `http://host:port` leads. Looks the name up, so it may block: for the start of the
/// program.
Result<net::Endpoint> ResolveUpstream(std::string_view url);

/// Who uses an upstream connection at the moment.
///
/// Thread safety: called on the reactor's thread.
class UpstreamUser {
 public:
  virtual void OnUpstreamConnected(const boost::system::error_code& error) = 0;
  virtual void OnUpstreamRead(const boost::system::error_code& error) = 0;
  virtual void OnUpstreamWritable() = 0;

 protected:
  ~UpstreamUser() = default;
};

/// One connection to one upstream. A read is under way whenever it rests in the pool, so a server
/// that closes it, or says something unasked, is noticed before the connection is used again.
///
/// Thread safety: belongs to its reactor's thread, including the reference counting.
class UpstreamConnection {
 public:
  UpstreamConnection(net::Reactor& reactor, std::size_t target);

  /// `user` hears what happens until Detach; `keeper` is held for as long.
  void Attach(UpstreamUser& user, boost::intrusive_ptr<net::Connection> keeper) noexcept;
  void Detach() noexcept;

  void Connect(const net::Endpoint& endpoint);
  /// Reads into `buffer`, unless a read is under way already.
  void Read();
  void WaitWritable();
  void Close() noexcept;

  Buffer& buffer() noexcept { return buffer_; }
  net::Socket& socket() noexcept { return socket_; }
  bool open() const noexcept { return socket_.is_open(); }
  bool reading() const noexcept { return reading_; }
  std::size_t target() const noexcept { return target_; }

  bool reused = false;         ///< has served a request before
  std::size_t idle_since = 0;  ///< the pool's sweep count when it came to rest

  friend void intrusive_ptr_add_ref(UpstreamConnection* connection) noexcept {
    ++connection->references_;
  }
  friend void intrusive_ptr_release(UpstreamConnection* connection) noexcept {
    if (--connection->references_ == 0) delete connection;
  }

 private:
  using Ptr = boost::intrusive_ptr<UpstreamConnection>;

  net::Socket socket_;
  Buffer buffer_;
  const std::size_t target_;
  std::size_t references_ = 0;
  UpstreamUser* user_ = nullptr;
  boost::intrusive_ptr<net::Connection> keeper_;
  bool reading_ = false;
};

using UpstreamPtr = boost::intrusive_ptr<UpstreamConnection>;

struct PoolLimits {
  std::size_t idle_connections = 64;              ///< kept per upstream and reactor
  std::chrono::seconds idle_timeout{30};          ///< less than the upstream's own
  std::chrono::seconds retry_failed_upstream{5};  ///< an upstream that refuses rests so long
};

/// One reactor's resting connections, and whose turn it is.
///
/// Thread safety: belongs to one reactor's thread.
class UpstreamPool final : private net::TimerWheel::Entry {
 public:
  UpstreamPool(net::Reactor& reactor, std::vector<net::Endpoint> targets, PoolLimits limits);

  /// A connection to the next upstream in turn: one that rests, or one that is yet to be connected
  /// (open() tells). With `fresh` always the latter.
  UpstreamPtr Take(bool fresh);
  /// Puts a connection to rest. Requires that nobody is attached and nothing is left in its buffer.
  void Return(UpstreamPtr connection);
  /// This upstream does not answer: the others take its turns for a while.
  void MarkDown(std::size_t target) noexcept;

  const net::Endpoint& endpoint(std::size_t target) const noexcept {
    return targets_[target].endpoint;
  }
  std::size_t size() const noexcept { return targets_.size(); }
  /// Closes what rests and lets go of the reactor: for the time between its end and its
  /// destruction.
  void Clear() noexcept;

 private:
  struct Target {
    net::Endpoint endpoint;
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
