#pragma once

// Readiness of many raw sockets on one reactor, edge triggered: a descriptor is registered once and
// never again touched until it goes. It is an epoll of its own that the reactor's io_context
// watches as one descriptor, so the sockets that became ready together are served in one go, with
// one recv and one send each and no operation object per read. Idle sockets hold no buffer.

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "weir/result.h"

namespace weir::server {

/// Thread safety: belongs to one reactor's thread.
class Poller : public std::enable_shared_from_this<Poller> {
 public:
  /// Something that waits for a socket. Must be removed before it is destroyed.
  class Watcher {
   public:
    /// `events` as epoll gives them: what has become possible since the last call. May remove
    /// itself.
    virtual void OnReady(std::uint32_t events) = 0;
    /// After OnReady of all that were ready together, for those that asked with AtRoundEnd.
    virtual void OnRoundEnd() = 0;

   protected:
    ~Watcher() = default;
  };

  /// Lives as long as `context` watches it, which is until Stop or the context's end.
  static Result<std::shared_ptr<Poller>> Make(boost::asio::io_context& context);

  explicit Poller(boost::asio::io_context& context);

  /// Begins to watch. A socket that is ready already is told so.
  Status Add(int fd, Watcher& watcher);
  /// Ends watching, before `fd` is closed.
  void Remove(int fd, Watcher& watcher) noexcept;
  /// To be called from OnReady alone: calls OnRoundEnd when the others have had their turn too.
  void AtRoundEnd(Watcher& watcher) { ending_.push_back(&watcher); }
  /// Calls OnReady(0) once, after the others have had their turn: for who has more to do than is
  /// fair.
  void Defer(Watcher& watcher);

 private:
  Status Open();
  void Wait();
  void Dispatch();
  void EndRound();
  void RunDeferred();

  using Descriptor =
      boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type>;

  boost::asio::io_context& context_;
  Descriptor epoll_;
  std::vector<Watcher*> ready_;     // of the round being dispatched; null: gone meanwhile
  std::vector<Watcher*> ending_;    // likewise
  std::vector<Watcher*> deferred_;  // likewise
  bool resume_posted_ = false;
};

}  // namespace weir::server
