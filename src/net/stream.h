#pragma once

// The one loop between a peer and a session. Every door of the service uses it, so
// there is one rule of back-pressure and one set of time limits:
//
//  - While older bytes wait for the peer, the session makes nothing newer and nothing is read.
//  - Nothing is read while the session cannot answer it: while it waits for a store or a handler,
//    or has answers left to make.
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
  /// What is to be done when everything that was said has been sent.
  enum class Next : std::uint8_t {
    kRead,   ///< everything is answered: read on
    kAgain,  ///< more answers can be made
    kWait,   ///< until Wake: a store or a handler has yet to answer
    kClose,  ///< the conversation is over
  };

  /// What the peer is expected to do.
  enum class Stage : std::uint8_t {
    kGreeting,  ///< say who it is
    kIdle,      ///< begin a request
    kRequest,   ///< complete a request
    kBusy,      ///< nothing: requests are under way that have time limits of their own
  };

  /// How long it may take.
  struct Times {
    std::chrono::milliseconds greeting{10'000};
    std::chrono::milliseconds idle{75'000};
    std::chrono::milliseconds request{30'000};
    std::chrono::milliseconds write{30'000};  ///< to take some of what is sent to it
  };

  /// A conversation without the peer: bytes in, checks, answers out.
  class Session {
   public:
    /// Where to put what arrives, at least one byte; then Received.
    virtual std::span<char> Space() = 0;
    virtual void Received(std::size_t size) = 0;
    /// The peer will send no more; what has come in is still answered.
    virtual void EndOfInput() = 0;

    /// Makes answers out of what has arrived, if it can. Called when Output is empty, or cannot be
    /// sent before the transport is ready.
    virtual Next Advance() = 0;
    /// What is to be sent, oldest first. May grow at its end at any time.
    virtual std::string_view Output() const = 0;
    /// So much of the output is gone.
    virtual void Sent(std::size_t size) = 0;

    virtual Stage stage() const = 0;
    /// The peer took too long for that. True: close at once. False: Advance has last words.
    virtual bool OnTimeout(Stage stage) = 0;
    /// The stream is closed, for whatever reason. The last call, though answers may still come.
    virtual void OnClosed() {}

   protected:
    ~Session() = default;
  };

  /// All references must outlive the stream.
  Stream(Transport& transport, Session& session, Reactor& reactor, const Times& times);
  ~Stream() override;

  /// Begins to serve.
  void Start();
  /// The session has something new to say or to do. Not to be called from within Advance.
  void Wake();
  /// The same, when the others had their turn. May be called at any time.
  void WakeLater();
  /// Closes after what is under way, and after `grace` if nothing is.
  void Drain(std::chrono::milliseconds grace);
  /// The peer has no more than this to say who it is, from now on.
  void LimitGreeting(std::chrono::milliseconds limit);
  /// Closes at once, whatever is under way.
  void Close();
  bool closed() const noexcept { return state_ == State::kClosed; }

  void OnReadable() override;
  void OnWritable() override;
  void OnTurn() override;

 private:
  enum class State : std::uint8_t { kOpen, kLingering, kClosed };
  /// Which time limit runs.
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
