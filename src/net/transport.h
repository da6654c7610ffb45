#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace weir::net {

class Counted;

/// Carries bytes to and from a peer without ever blocking: a socket, or a test's script. All code
/// that talks to a peer uses this, so it can be tested without a socket.
///
/// Thread safety: belongs to its reactor's thread.
class Transport {
 public:
  /// Is notified, never from within a call of the transport. Is kept alive while it waits.
  class Watcher {
   public:
    /// Receive will probably return something: bytes, the end, or an error.
    virtual void OnReadable() = 0;
    /// Send will probably accept something.
    virtual void OnWritable() = 0;
    /// What AwaitTurn or AwaitSpare requested.
    virtual void OnTurn() {}

   protected:
    ~Watcher() = default;
  };

  enum class Outcome { kBytes, kNothing, kEnd, kBroken };
  struct Received {
    Outcome outcome;
    std::size_t size = 0;
  };

  virtual ~Transport() = default;

  /// Sets who is notified, and kept alive while waiting. Call it before anything else.
  virtual void Attach(Counted& owner, Watcher& watcher) noexcept = 0;

  virtual bool is_open() const noexcept = 0;
  /// It accepts bytes to send. False during a handshake, which Receive continues.
  virtual bool ready() const noexcept { return true; }
  /// Everything that Send has accepted is on its way.
  virtual bool flushed() const noexcept { return true; }
  /// Why the last Receive found it broken, in words for people.
  virtual std::string failure() const { return "the connection was closed"; }
  virtual bool secure() const noexcept { return false; }
  /// The common name in the peer's certificate, once it is ready; empty without one.
  virtual std::string peer_name() const { return {}; }

  /// Receives available bytes, as many as fit. Requires that it is open.
  virtual Received Receive(std::span<char> space) noexcept = 0;
  /// The last Receive left something: call it again, now or after AwaitReadable.
  virtual bool more() const noexcept = 0;
  /// Sends `bytes`, then `rest`, as far as possible now, and returns how much; -1: the connection
  /// is broken. If that is less than all, OnWritable says when to continue.
  virtual std::ptrdiff_t Send(std::string_view bytes, std::string_view rest) noexcept = 0;
  std::ptrdiff_t Send(std::string_view bytes) noexcept { return Send(bytes, {}); }

  /// Calls OnReadable once, as soon as there is something. No effect while it is waiting already.
  virtual void AwaitReadable() = 0;
  /// Likewise OnWritable.
  virtual void AwaitWritable() = 0;
  /// Likewise OnTurn, after the others with work to do have had their turn.
  virtual void AwaitTurn() = 0;
  /// Likewise, for reading what is discarded (Turns::spare).
  virtual void AwaitSpare() = 0;

  /// Ends our side: the peer reads the end after what has been sent.
  virtual bool ShutDownSend() noexcept = 0;
  /// No more notifications after this.
  virtual void Close() noexcept = 0;
  /// Closes so that the peer learns that what it received is incomplete.
  virtual void Reset() noexcept { Close(); }
};

}  // namespace weir::net
