#pragma once

// The one loop between a peer and a session. Every door of the service uses it, so
// there is one rule of back-pressure and one set of time limits:
//
// - While older bytes wait for the peer, the session produces no newer ones and nothing is read.
//  - Nothing is read while the session cannot answer it: while it waits for a store or a handler,
// or still has answers to write.
//  - Whatever the peer is expected to do next has a time limit. Only an answer earns more time:
//    bytes that trickle in do not.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/timer_wheel.h"
#include "net/transport.h"

namespace weir::net {

class Reactor;
class Turns;

/// Thread safety: belongs to its reactor's thread.
class Stream final : public Transport::Watcher, private TimerWheel::Entry {
 public:
  /// What to do when all output has been sent.
  enum class Next : std::uint8_t {
    kRead,   ///< everything is answered: read on
    kAgain,  ///< more answers can be made
    kWait,   ///< until Wake: a store or a handler has not answered yet
    kClose,  ///< the conversation is over
  };

  /// What the peer is expected to do.
  enum class Stage : std::uint8_t {
    kGreeting,  ///< handshake and authenticate
    kIdle,      ///< begin a request
    kRequest,   ///< complete a request
    kBusy,      ///< nothing: requests are under way that have time limits of their own
  };

  /// How long it may take.
  struct Times {
    std::chrono::milliseconds greeting{10'000};
    std::chrono::milliseconds idle{75'000};
    std::chrono::milliseconds request{30'000};
    std::chrono::milliseconds write{30'000};  ///< to accept some of the output
  };

  /// A conversation without its transport: bytes in, checks, answers out.
  class Session {
   public:
    /// Where to write received bytes, at least one; Received follows.
    virtual std::span<char> Space() = 0;
    virtual void Received(std::size_t size) = 0;
    /// The peer will send no more; what was received is still answered.
    virtual void EndOfInput() = 0;

    /// Answers what has arrived, if it can. Called when Output is empty, or cannot be sent before
    /// the transport is ready.
    virtual Next Advance() = 0;
    /// Bytes to send, oldest first. May grow at its end at any time.
    virtual std::string_view Output() const = 0;
    /// `size` bytes of the output were sent.
    virtual void Sent(std::size_t size) = 0;

    virtual Stage stage() const = 0;
    /// The peer took too long for it. True: close now. False: Advance has a last answer to send.
    virtual bool OnTimeout(Stage stage) = 0;
    /// The stream is closed, for whatever reason. The last call, though answers may still arrive.
    virtual void OnClosed() {}

   protected:
    ~Session() = default;
  };

  /// All references must outlive the stream.
  Stream(Transport& transport, Session& session, Reactor& reactor, const Times& times);
  ~Stream() override;

  /// Begins to serve.
  void Start();
  /// The session has new output or new work. Must not be called from within Advance.
  void Wake();
  /// Like Wake, after the others have had their turn. May be called at any time.
  void WakeLater();
  /// Closes when requests under way are done, and after `grace` if there are none.
  void Drain(std::chrono::milliseconds grace);
  /// Limits the time left for the peer's greeting to this, from now on.
  void LimitGreeting(std::chrono::milliseconds limit);
  /// Closes immediately, whatever is under way.
  void Close();
  bool closed() const noexcept { return state_ == State::kClosed; }

  void OnReadable() override;
  void OnWritable() override;
  void OnTurn() override;

 private:
  enum class State : std::uint8_t { kOpen, kLingering, kClosed };
  /// Which time limit is running.
  enum class Timing : std::uint8_t { kNone, kGreeting, kIdle, kRequest, kWrite, kLinger };

  void OnDeadline() override;
  void Run();
  bool Step();
  bool Read();
  bool Flush();
  bool AllSent() const;
  void Finish();
  bool Discard();
  void Settle();
  void SetTimer();
  Timing TimingNow() const;
  std::chrono::milliseconds LimitOf(Timing timing) const noexcept;

  Transport& transport_;
  Session& session_;
  TimerWheel& timers_;
  Turns& turns_;
  Times times_;
  std::size_t lingered_ = 0;
  std::chrono::milliseconds grace_{0};
  Next next_ = Next::kAgain;
  State state_ = State::kOpen;
  Timing timing_ = Timing::kNone;
  bool running_ = false;
  bool readable_ = false;
  bool blocked_ = false;   // the peer did not take everything: wait until it does
  bool ended_ = false;     // nothing more can be read
  bool progress_ = false;  // something was answered, or taken, since the timer was set
  bool draining_ = false;
  bool turn_ = false;  // has had its share: everything waits for the next turn
};

}  // namespace weir::net
