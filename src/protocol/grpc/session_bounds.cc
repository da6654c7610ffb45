// The part of Session that bounds what a peer may cost: in frames, in memory and in time.

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "protocol/grpc/method.h"
#include "protocol/grpc/session.h"

namespace weir::grpc {
namespace {

/// What an open call takes by itself: the Call, and nghttp2's stream.
constexpr std::size_t kCallBytes = 1024;

/// This many bytes of messages are passed to their methods in one turn, and one message more. The
/// last bytes of many large messages fit into one read. Fields of heads count an eighth.
constexpr std::size_t kWorkAtOnce = 128 << 10;
/// This many bytes of heads are passed on before the work that they caused is checked.
constexpr std::size_t kHeadsAtOnce = 512;

/// Calls that are ended in one turn, because their time is over or the program ends: thousands that
/// were begun together are over together.
constexpr std::size_t kEndAtOnce = 256;

/// Frames for which nghttp2 looks at every open stream: 130 µs with 16,000 of them. A stream counts
/// as so many bytes of work, and that much work as another frame without work.
constexpr std::size_t kWorkPerStream = 2;
constexpr std::size_t kWorkPerFrame = 128;
/// Values in SETTINGS may open or close every stream's window. Then nghttp2 tries all answers that
/// were held back again: 5 ms with 16,000 of them, for one frame that opens and one that closes.
constexpr std::size_t kWorkPerWindow = 32;

bool ConcernsAllStreams(std::uint8_t type) noexcept {
  return type == NGHTTP2_SETTINGS || type == NGHTTP2_GOAWAY;
}

std::size_t WorkPerStream(const FrameHead& frame) noexcept {
  return frame.type == NGHTTP2_SETTINGS && frame.length != 0 ? kWorkPerWindow : kWorkPerStream;
}

}  // namespace

void Session::Terminate(std::uint32_t code) {
  if (std::exchange(terminated_, true)) return;
  nghttp2_session_terminate_session(h2_, code);
  if (!busy_) observer_.OnOutput();
}

/// Passes the bytes to nghttp2, but judges each frame first. Frames that depend on the state of
/// their stream are judged when everything before them has been passed on.
bool Session::Take(std::string_view bytes) {
  std::size_t fed = 0;
  std::size_t at = 0;
  std::size_t begin = 0;
  while (const auto frame = scanner_.Next(bytes, at, begin)) {
    const bool begins = frame->type == NGHTTP2_HEADERS && frame->stream > history_.last();
    const bool work = frame->type == NGHTTP2_HEADERS || frame->type == NGHTTP2_DATA ||
                      ConcernsAllStreams(frame->type);
    if (work && (!begins || begin - fed > kHeadsAtOnce)) {
      if (!Feed(bytes.substr(fed, begin - fed))) return false;
      fed = begin;
      if (worked_ > kWorkAtOnce) {
        scanner_.PutBack(at - begin);
        rest_ = bytes.substr(begin);
        return true;
      }
    }
    if (begins) {
      history_.Open(frame->stream);
      control_.Earn(kFramesPerCall);
      continue;
    }
    Judge(*frame);
    if (terminated_) return false;
  }
  return Feed(bytes.substr(fed));
}

/// A frame that does not begin a call.
void Session::Judge(const FrameHead& frame) {
  switch (frame.type) {
    case NGHTTP2_RST_STREAM:
      history_.Close(frame.stream);
      return OnReset();
    case NGHTTP2_SETTINGS:
      greeted_ = true;
      break;
    case NGHTTP2_PRIORITY:
      if (frame.stream == 0) return Terminate(NGHTTP2_PROTOCOL_ERROR);
      break;
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
      if (Find(frame.stream) != nullptr) {
        // Bytes or an end are work; an empty frame is not.
        if (frame.length != 0 || (frame.flags & NGHTTP2_FLAG_END_STREAM) != 0) return;
      } else if (history_.Closed(frame.stream)) {
        return Terminate(NGHTTP2_STREAM_CLOSED);
      } else if (history_.Skipped(frame.stream)) {
        return Terminate(NGHTTP2_PROTOCOL_ERROR);
      }
      break;
    default:
      break;
  }
  if (ConcernsAllStreams(frame.type)) {
    const std::size_t work = open_.size() * WorkPerStream(frame);
    worked_ += work;
    control_.Forgo(static_cast<std::int64_t>(work / kWorkPerFrame));
  }
  if (!control_.Spend(clock_)) Terminate(NGHTTP2_ENHANCE_YOUR_CALM);
}

void Session::OnReset() {
  if (!resets_.Spend(clock_)) Terminate(NGHTTP2_ENHANCE_YOUR_CALM);
}

void Session::OnAnswered(Call& call) {
  control_.Earn(kFramesPerCall);
  // The answer is complete and the client is still sending: tell it to stop, without calling it an
  // error.
  if (!call.half_closed_) {
    nghttp2_submit_rst_stream(h2_, NGHTTP2_FLAG_NONE, call.id_, NGHTTP2_NO_ERROR);
  }
}

void Session::OnUnsent(std::size_t bytes) {
  unsent_ += bytes;
  const bool room = Account() || unsent_ <= services_.memory().Share(options_.fair_bytes);
  if (!room || unsent_ > options_.max_unsent_bytes) Terminate(NGHTTP2_ENHANCE_YOUR_CALM);
}

/// Updates the reactor's account of what this session holds. False: all together hold too much, and
/// this one more than its share.
bool Session::Account() noexcept {
  const std::size_t before = accounted_;
  accounted_ = buffered_ + unsent_ + open_.size() * kCallBytes;
  MemoryBudget& memory = services_.memory();
  return memory.Change(before, accounted_) || accounted_ <= memory.Share(options_.fair_bytes);
}

void Session::SetKey(Call& call, std::string_view key) {
  buffered_ -= call.key_.size();
  call.key_ = std::string(key);
  buffered_ += call.key_.size();
  Account();
}

/// This many messages of a stream have been answered.
void Session::OnAnswers(Call& call, std::uint64_t count) {
  const bool was_full = full();
  expected_ -= count;
  if (call.expected() == 0) buffered_ -= std::exchange(call.pending_, 0);
  Account();
  if (was_full && !full() && !busy_) observer_.OnOutput();
}

/// When something has to be done about the call; 0: never.
Nanos Session::DueAt(const Call& call) const noexcept {
  if (call.half_closed_ || call.arrives_by_ == 0) return call.deadline_;
  return call.deadline_ == 0 ? call.arrives_by_ : std::min(call.deadline_, call.arrives_by_);
}

/// Answers left after everything that may be sent was sent wait for the peer to open window.
void Session::NoteStall() {
  if (unsent_ == 0) {
    stalled_since_ = 0;
  } else if (stalled_since_ == 0 || stalled_at_ != taken_) {
    stalled_since_ = clock_.Now();
    stalled_at_ = taken_;
  }
}

std::optional<Nanos> Session::NextDeadline() {
  const std::optional<Nanos> call = NextCallDeadline();
  if (stalled_since_ == 0 || terminated_) return call;
  const Nanos stall = stalled_since_ + std::chrono::nanoseconds(options_.write_timeout).count();
  return call ? std::min(*call, stall) : stall;
}

/// A call has one valid entry, the earliest; others are left until their time.
void Session::Queue(Call& call) {
  const Nanos due = DueAt(call);
  if (due == 0 || (call.queued_ != 0 && call.queued_ <= due)) return;
  call.queued_ = due;
  due_.emplace_back(due, call.id_);
  std::push_heap(due_.begin(), due_.end(), std::greater<>());
}

std::optional<Nanos> Session::NextCallDeadline() {
  while (!due_.empty()) {
    const Call* call = Find(due_.front().second);
    if (call != nullptr && !call->finished_ && call->queued_ == due_.front().first) {
      return due_.front().first;
    }
    std::pop_heap(due_.begin(), due_.end(), std::greater<>());
    due_.pop_back();
  }
  return std::nullopt;
}

/// A stream's message that has begun must arrive within the time of a request; otherwise clients
/// could keep memory occupied by doing nothing.
void Session::NoteBegun(Call& call) {
  const bool begun = call.reader_.midway() && !call.method_->single_request();
  if (begun && !call.midway_ && call.arrives_by_ != 0) {
    call.arrives_by_ = clock_.Now() + std::chrono::nanoseconds(options_.request_timeout).count();
    Queue(call);
  } else if (!begun && call.midway_ && call.arrives_by_ != 0) {  // one was skipped
    call.arrives_by_ = clock_.Now() + std::chrono::nanoseconds(options_.stream_timeout).count();
  }
  call.midway_ = begun;
}

bool Session::Expire(Nanos now) {
  if (stalled_since_ != 0 &&
      now - stalled_since_ >= std::chrono::nanoseconds(options_.write_timeout).count()) {
    Terminate(NGHTTP2_ENHANCE_YOUR_CALM);
  }
  std::size_t looked_at = 0;
  for (auto next = NextCallDeadline(); next && *next <= now; next = NextCallDeadline()) {
    if (++looked_at > kEndAtOnce) return true;
    const std::int32_t id = due_.front().second;
    std::pop_heap(due_.begin(), due_.end(), std::greater<>());
    due_.pop_back();
    Call& call = *Find(id);
    call.queued_ = 0;
    const Nanos due = DueAt(call);
    if (due != 0 && due <= now) {
      EndOverdue(call, now);
    } else {
      // It has moved: the request has arrived, or a message of the stream has.
      Queue(call);
    }
  }
  return false;
}

void Session::EndOverdue(Call& call, Nanos now) {
  if (&call == head_) return Terminate(NGHTTP2_ENHANCE_YOUR_CALM);
  const bool own = call.deadline_ != 0 && call.deadline_ <= now;
  call.Finish(StatusCode::kDeadlineExceeded,
              own ? "the deadline has passed" : "the request did not arrive in time");
  ReadMessages(call, {});
}

/// From the end of open_: a call that closes between two turns leaves its place to the last one,
/// which has been ended before it.
bool Session::EndCalls(std::string_view reason) {
  to_end_ = std::min(to_end_ == 0 ? open_.size() : to_end_, open_.size());
  for (std::size_t ended = 0; to_end_ != 0 && ended < kEndAtOnce; ++ended) {
    open_[--to_end_]->Finish(StatusCode::kUnavailable, reason);
  }
  return to_end_ != 0;
}

void Session::RememberDeadlines() {
  Nanos now = 0;
  for (const std::int32_t id : begun_) {
    Call* call = Find(id);
    if (call == nullptr || call->finished_) continue;
    if (!call->half_closed_) {
      if (now == 0) now = clock_.Now();
      const bool stream = call->method_ != nullptr && !call->method_->single_request();
      const auto time =
          stream && !call->midway_ ? options_.stream_timeout : options_.request_timeout;
      call->arrives_by_ = now + std::chrono::nanoseconds(time).count();
    }
    Queue(*call);
  }
  begun_.clear();
  // Calls that ended before their deadline leave their entry behind; sweep when those predominate.
  if (due_.size() <= 2 * open_.size() + 1024) return;
  std::erase_if(due_, [this](const Due& due) {
    const Call* call = Find(due.second);
    return call == nullptr || call->queued_ != due.first;
  });
  std::make_heap(due_.begin(), due_.end(), std::greater<>());
}

}  // namespace weir::grpc
