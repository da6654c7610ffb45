#pragma once

// The server side of one HTTP/2 connection that speaks gRPC: bytes in, bytes out, no socket.
// nghttp2 does frames, header compression and flow control; this does calls: heads, messages,
// statuses, deadlines, back-pressure, and what a malicious peer may cost.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/grpc/allowance.h"
#include "protocol/grpc/call.h"
#include "protocol/grpc/frame_scanner.h"
#include "protocol/grpc/stream_history.h"
#include "weir/clock.h"

struct nghttp2_session;

namespace weir::grpc {

class Services;

/// Frames without work that a call, and later its answer, justifies: the peer opens windows,
/// returns them, and may measure the delay.
inline constexpr std::int64_t kFramesPerCall = 4;

/// What HTTP/2 counts for a header field beside its name and value.
inline constexpr std::size_t kFieldBytes = 32;

struct SessionOptions {
  std::uint32_t max_concurrent_streams = 16'384;
  std::size_t max_message_bytes = std::size_t{512} << 10;
  /// Names and values of one request's header fields.
  std::size_t max_header_bytes = 16'384;
  /// What requests of all streams together hold in memory, from their first byte to their answer;
  /// the stream that exceeds it is refused.
  std::size_t max_buffered_bytes = std::size_t{16} << 20;
  /// Answers without window from the peer, of all streams together; beyond that it is cut off.
  std::size_t max_unsent_bytes = std::size_t{16} << 20;
  /// What this session may hold for its peer even if all sessions of its reactor hold too much
  /// (Services::memory): requests with all that belongs to open calls, and answers.
  std::size_t fair_bytes = std::size_t{256} << 10;
  /// Messages of all streams together that wait for their answers; beyond that no more is read.
  std::uint64_t max_waiting_messages = 32'768;
  /// Frames that wait to be sent, beside two for each stream; beyond that the peer is cut off.
  std::size_t max_queued_frames = 8'192;
  /// From a call's first byte to the end of its request; from the first byte of a stream's message
  /// to its last.
  std::chrono::milliseconds request_timeout{30'000};
  /// For the peer to open window for some of its answers; after that it is cut off.
  std::chrono::milliseconds write_timeout{30'000};
  /// For a call that takes a stream of messages: until the next one.
  std::chrono::milliseconds stream_timeout{600'000};
  /// A stream whose unsent answers exceed this gets no more window until they have been sent.
  std::size_t stream_backlog_bytes = std::size_t{256} << 10;
  /// Likewise for messages that wait for their answer.
  std::uint64_t stream_backlog_messages = 1024;
  std::uint32_t connection_window_bytes = std::uint32_t{4} << 20;
  std::uint32_t stream_window_bytes = std::uint32_t{256} << 10;
  /// Streams that are reset, by either side: how many at once, and how many a second after that;
  /// beyond that the peer is cut off.
  std::int64_t reset_burst = 20'000;
  std::int64_t reset_rate = 1'000;
  /// Likewise for frames without work: PING, SETTINGS, PRIORITY, WINDOW_UPDATE beyond what
  /// the answers call for, empty DATA, frames on streams that are over.
  std::int64_t control_burst = 2'000;
  std::int64_t control_rate = 500;
};

/// Called by a session that has something to send although nothing was received. OnOutput must not
/// call the session back itself; do so soon afterwards.
class SessionObserver {
 public:
  virtual ~SessionObserver() = default;
  virtual void OnOutput() = 0;
};

/// Thread safety: belongs to one reactor.
class Session {
 public:
  /// All references must outlive the session.
  Session(const Services& services, const SessionOptions& options, const Clock& clock,
          SessionObserver& observer);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Processes what the peer sent. False: the peer broke the protocol; send what is left and close.
  bool Receive(std::string_view bytes);
  /// Some of what was received was set aside, since it is more work than one turn should do:
  /// receive nothing more, and call Receive with nothing after others have had their turn.
  bool paused() const noexcept { return !rest_.empty(); }
  /// Appends bytes to send, stopping soon after `out` holds `enough`. False if nothing further
  /// can ever be sent or received: close when `out` has been sent.
  bool Fill(std::string& out, std::size_t enough);
  /// The peer has greeted: everything before that is the connection's beginning.
  bool greeted() const noexcept { return greeted_; }
  /// So much waits for its answer that no more should be received for now.
  bool full() const noexcept { return expected_ > options_.max_waiting_messages; }

  /// Tells the peer to use another connection, and lets calls under way finish. The second call
  /// refuses calls that the peer began in the meantime; it happens by itself when the peer answers.
  void Drain();
  /// Ends all open calls with UNAVAILABLE: the last step of a drain. True: there are more calls,
  /// for another turn.
  bool EndCalls(std::string_view reason);

  /// When Expire should be called next, if at all.
  std::optional<Nanos> NextDeadline();
  /// Ends calls whose deadline is `now` or earlier, and the session if its peer has not taken any
  /// of its answers for too long. True: there are more calls, for another turn.
  bool Expire(Nanos now);

  /// Null if the call is over.
  Call* Find(std::int32_t id) const noexcept;
  std::size_t open_calls() const noexcept { return open_.size(); }

  /// Sets who is at the other end, for Services::guard.
  /// `subject` returns the common name in the peer's certificate; it is called once calls arrive.
  void SetPeer(std::string address, std::function<std::string()> subject) {
    peer_address_ = std::move(address);
    peer_subject_ = std::move(subject);
  }

  /// Calls that were answered since this was last called.
  std::uint64_t TakeAnswered() noexcept { return std::exchange(answered_, 0); }

  /// Becomes null when the session is destroyed: for code that answers later.
  const std::shared_ptr<Session*>& link() const noexcept { return link_; }
  /// Whether the client reads its answers: not if many wait for window from it.
  bool takes_answers() const noexcept { return unsent_ <= (std::size_t{64} << 10); }

 private:
  friend class Call;
  friend struct SessionCallbacks;

  // What nghttp2 reports, by way of SessionCallbacks.
  Call& Begin(std::int32_t id);
  void OnHeader(Call& call, std::string_view name, std::string_view value);
  void OnHead(Call& call);
  void OnData(Call& call, std::string_view bytes);
  void OnEnd(Call& call);
  void OnClosed(Call& call) noexcept;
  bool Take(std::string_view bytes);
  bool Feed(std::string_view bytes);
  void Judge(const FrameHead& frame);
  void OnReset();
  void OnPingAnswered();
  void OnUnsent(std::size_t bytes);
  void OnAnswers(Call& call, std::uint64_t count);
  void OnAnswered(Call& call);
  std::size_t TakeOut(Call& call, std::uint8_t* to, std::size_t room);

  void ReadMessages(Call& call, std::string_view bytes);
  void Refuse(Call& call, std::string_view why);
  void NoteBegun(Call& call);
  bool Accept(Call& call, MessageReader::Step step);
  bool Blocked(const Call& call) const noexcept;
  void Unblock(Call& call);
  void Resume(Call& call);
  void Submit(Call& call);
  void SubmitStatusOnly(Call& call);
  void SubmitTrailers(Call& call);
  void SubmitHttpError(Call& call, std::string_view http_status);
  void SubmitFinalGoaway();
  void Terminate(std::uint32_t code);
  void RememberDeadlines();
  std::optional<Nanos> NextCallDeadline();
  void NoteStall();
  Nanos DueAt(const Call& call) const noexcept;
  void Queue(Call& call);
  void EndOverdue(Call& call, Nanos now);

  Status Admit(const Call& call, bool gives_back) const;
  void SetKey(Call& call, std::string_view key);
  Status Hold(Call& call, std::size_t bytes);
  bool Account() noexcept;

  const Services& services_;
  std::string peer_address_;
  std::function<std::string()> peer_subject_;
  const SessionOptions options_;
  const Clock& clock_;
  SessionObserver& observer_;
  nghttp2_session* h2_ = nullptr;
  std::shared_ptr<Session*> link_;
  std::vector<std::unique_ptr<Call>> open_;  // each knows its place here
  std::size_t to_end_ = 0;                   // EndCalls has come so far, from the end of open_
  Call* head_ = nullptr;                     // the one whose request head is arriving
  std::size_t head_bytes_ = 0;               // of the fields that are arriving, unfolded
  std::uint64_t answered_ = 0;
  std::size_t buffered_ = 0;      // Call::held of all
  std::size_t unsent_ = 0;        // Call::unsent of all
  std::size_t accounted_ = 0;     // what Services::memory was told
  std::uint64_t taken_ = 0;       // bytes of answers that found window, ever
  std::uint64_t stalled_at_ = 0;  // taken_ when the peer last took some
  Nanos stalled_since_ = 0;       // answers wait for window; 0: none do
  std::uint64_t expected_ = 0;    // Call::expected of all
  bool greeted_ = false;
  bool terminated_ = false;
  bool busy_ = false;  // inside Receive or Fill, whose caller will look for output anyway
  bool draining_ = false;
  bool goaway_sent_ = false;

  // Deadlines are remembered only for calls that outlive the burst they came in. A heap.
  using Due = std::pair<Nanos, std::int32_t>;
  std::vector<std::int32_t> begun_;
  std::vector<Due> due_;

  std::size_t worked_ = 0;  // in this turn, in bytes of messages passed to methods
  std::string rest_;        // received, but left for the next turn

  FrameScanner scanner_;
  StreamHistory history_;
  Allowance control_;
  Allowance resets_;
};

}  // namespace weir::grpc
