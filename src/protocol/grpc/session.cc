#include "protocol/grpc/session.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>

#include "base/ascii.h"
#include "protocol/grpc/method.h"

namespace weir::grpc {
namespace {

constexpr std::size_t kMaxIdBytes = 128;

constexpr std::string_view kTooMuch = "the requests of all connections use too much memory";
constexpr std::string_view kTooMuchHere = "the requests on this connection use too much memory";

constexpr std::size_t kSpareCalls = 1024;

// Finished calls, kept with their buffers. Not per session, since an idle connection
// would keep those of its busiest moment.
std::vector<std::unique_ptr<Call>>& SpareCalls() {
  thread_local std::vector<std::unique_ptr<Call>> spare;
  return spare;
}

/// A field that may carry a key. Of several, the one with the highest rank counts: a gateway sets
/// x-weir-key in addition to what its clients send.
struct KeyField {
  int rank = 0;  // 0: it carries none
  std::string_view key;
};

KeyField ReadKey(std::string_view name, std::string_view value) noexcept {
  constexpr std::string_view kBearer = "Bearer ";
  if (name == "x-weir-key") return {3, value};
  if (name == "x-api-key") return {2, value};
  const bool bearer =
      name == "authorization" && EqualsIgnoringCase(value.substr(0, kBearer.size()), kBearer);
  return bearer ? KeyField{1, Trim(value.substr(kBearer.size()))} : KeyField{};
}

}  // namespace

Call* Session::Find(std::int32_t id) const noexcept {
  return static_cast<Call*>(nghttp2_session_get_stream_user_data(h2_, id));
}

Call& Session::Begin(std::int32_t id) {
  std::unique_ptr<Call> call;
  std::vector<std::unique_ptr<Call>>& spare = SpareCalls();
  if (spare.empty()) {
    call = std::make_unique<Call>();
  } else {
    call = std::move(spare.back());
    spare.pop_back();
  }
  call->session_ = this;
  call->id_ = id;
  call->place_ = open_.size();
  begun_.push_back(id);
  nghttp2_session_set_stream_user_data(h2_, id, call.get());
  open_.push_back(std::move(call));
  return *open_.back();
}

void Session::OnHeader(Call& call, std::string_view name, std::string_view value) {
  call.header_bytes_ += name.size() + value.size() + kFieldBytes;
  if (call.header_bytes_ > options_.max_header_bytes) return;
  if (name == ":path") {
    call.method_ = services_.Find(value);
  } else if (name == ":method") {
    call.post_ = value == "POST";
  } else if (name == "content-type") {
    call.grpc_ = IsGrpcContentType(value);
  } else if (name == "grpc-timeout") {
    const auto timeout = ParseTimeout(value);
    call.bad_timeout_ = !timeout;
    call.timeout_ = timeout.value_or(std::chrono::nanoseconds(-1));
  } else if (name == "grpc-encoding") {
    call.encoded_ = value != "identity";
  } else if (const KeyField field = ReadKey(name, value); field.rank > 0 && services_.guard()) {
    if (field.rank < call.key_rank_) return;
    call.key_rank_ = field.rank;
    SetKey(call, field.key);
  } else if (name == "traceparent") {
    call.traceparent_ = value.substr(0, kMaxIdBytes);
  } else if (name == "x-request-id") {
    call.request_id_ = value.substr(0, kMaxIdBytes);
  }
}

Status Session::Admit(const Call& call, bool gives_back) const {
  if (!services_.guard()) return {};
  const std::string subject = call.key_.empty() && peer_subject_ ? peer_subject_() : std::string();
  return services_.guard()(*call.method_, {peer_address_, subject, call.key_, gives_back});
}

void Session::Refuse(Call& call, std::string_view why) {
  if (call.method_ == nullptr) return call.Finish(StatusCode::kResourceExhausted, why);
  call.method_->Refuse(call, why);
}

void Session::OnHead(Call& call) {
  if (call.header_bytes_ > options_.max_header_bytes) {
    return Refuse(call, "request header fields exceed " +
                            std::to_string(options_.max_header_bytes) + " bytes");
  }
  if (!call.post_) return SubmitHttpError(call, "405");
  if (!call.grpc_) return SubmitHttpError(call, "415");
  if (call.method_ == nullptr) {
    call.Finish(StatusCode::kUnimplemented, "no such method; server reflection lists the methods");
  } else if (call.encoded_) {
    call.Finish(StatusCode::kUnimplemented, "only grpc-encoding: identity is supported");
  } else if (call.bad_timeout_) {
    call.Finish(StatusCode::kInvalidArgument,
                "grpc-timeout must be one to eight digits and one of H M S m u n");
  } else if (call.timeout_ == std::chrono::nanoseconds(0)) {
    call.Finish(StatusCode::kDeadlineExceeded, "the deadline had passed on arrival");
  } else if (!Account()) {
    Refuse(call, kTooMuch);
  } else if (Status admitted = Admit(call, /*gives_back=*/false); !admitted.ok()) {
    call.Finish(admitted.error());
  } else if (call.timeout_ > std::chrono::nanoseconds(0)) {
    call.deadline_ = clock_.Now() + call.timeout_.count();
  }
  if (call.finished_ || !call.method_->may_give_back()) SetKey(call, {});
}

void Session::OnData(Call& call, std::string_view bytes) {
  if (Blocked(call)) {
    nghttp2_session_consume_connection(h2_, bytes.size());
    call.unconsumed_ += bytes.size();
  } else {
    nghttp2_session_consume(h2_, call.id_, bytes.size());
  }
  if (!call.finished_) ReadMessages(call, bytes);
}

void Session::ReadMessages(Call& call, std::string_view bytes) {
  const std::size_t before = call.reader_.buffered() + call.held_.size();
  while (!call.finished_) {
    const MessageReader::Step step = call.reader_.Next(bytes, options_.max_message_bytes);
    if (step == MessageReader::Step::kTooLarge && call.method_->SkipsLarge()) {
      call.reader_.SkipLarge(bytes);
      call.midway_ = false;
      continue;
    }
    if (step == MessageReader::Step::kNeedMore || !Accept(call, step)) break;
  }
  if (call.finished_) {
    // Nothing will read it any more, and its answer may take long.
    call.reader_.Reset();
    call.held_.clear();
    call.held_.shrink_to_fit();
  }
  buffered_ += call.reader_.buffered() + call.held_.size();
  buffered_ -= before;
  const bool room = Account();
  if (call.finished_) return;
  const bool within = buffered_ <= options_.max_buffered_bytes;
  if (room && within) return NoteBegun(call);
  Refuse(call, within ? kTooMuch : kTooMuchHere);
  ReadMessages(call, {});
}

Status Session::Hold(Call& call, std::size_t bytes) {
  call.pending_ += bytes;
  buffered_ += bytes;
  const bool room = Account();
  if (room && buffered_ <= options_.max_buffered_bytes) return {};
  call.pending_ -= bytes;
  buffered_ -= bytes;
  Account();
  return Error{Code::kResourceExhausted, std::string(room ? kTooMuchHere : kTooMuch)};
}

/// Handles one step of the reader; false when nothing further of this call is wanted.
bool Session::Accept(Call& call, MessageReader::Step step) {
  switch (step) {
    case MessageReader::Step::kMessage:
      if (!call.method_->single_request()) {
        call.midway_ = false;
        if (call.arrives_by_ != 0) {
          call.arrives_by_ =
              clock_.Now() + std::chrono::nanoseconds(options_.stream_timeout).count();
        }
        worked_ += call.reader_.message().size();
        call.method_->OnMessage(call, call.reader_.message());
        if (call.expected() != 0) {
          call.pending_ += call.reader_.message().size();
          buffered_ += call.reader_.message().size();
        }
      } else if (call.has_message_) {
        call.Finish(StatusCode::kUnimplemented, "this method takes exactly one message");
      } else {
        call.has_message_ = true;
        call.held_.assign(call.reader_.message());
      }
      break;
    case MessageReader::Step::kTooLarge:
      Refuse(call,
             "a message may have at most " + std::to_string(options_.max_message_bytes) + " bytes");
      break;
    case MessageReader::Step::kCompressed:
      call.Finish(StatusCode::kInternal, "a compressed message without a grpc-encoding");
      break;
    case MessageReader::Step::kBadFlag:
      call.Finish(StatusCode::kInternal, "the first byte of a message must be 0 or 1");
      break;
    case MessageReader::Step::kNeedMore:
      break;
  }
  return !call.finished_;
}

void Session::OnEnd(Call& call) {
  call.half_closed_ = true;
  if (call.finished_) return;
  if (call.reader_.midway()) {
    call.Finish(StatusCode::kInternal, "the stream ended within a message");
  } else if (!call.method_->single_request()) {
    call.method_->OnHalfClose(call);
  } else if (!call.has_message_) {
    call.Finish(StatusCode::kUnimplemented, "this method takes exactly one message");
  } else {
    worked_ += call.held_.size();
    call.method_->OnMessage(call, call.held_);
  }
}

void Session::OnClosed(Call& call) noexcept {
  if (call.method_ != nullptr) call.method_->OnClose(call);
  if (call.half_closed_) history_.Close(call.id_);
  buffered_ -= call.held();
  unsent_ -= call.unsent();
  expected_ -= call.expected();
  std::swap(open_[call.place_], open_.back());
  open_[call.place_]->place_ = call.place_;
  std::unique_ptr<Call> last = std::move(open_.back());
  open_.pop_back();
  Account();
  if (SpareCalls().size() < kSpareCalls) {
    last->Reset();
    SpareCalls().push_back(std::move(last));
  }
}

bool Session::Blocked(const Call& call) const noexcept {
  return call.backlog() > options_.stream_backlog_bytes ||
         call.expected() > options_.stream_backlog_messages;
}

void Session::Unblock(Call& call) {
  if (call.unconsumed_ == 0 || Blocked(call)) return;
  nghttp2_session_consume_stream(h2_, call.id_, std::exchange(call.unconsumed_, 0));
}

/// The call has new output.
void Session::Resume(Call& call) {
  if (!call.submitted_) {
    call.submitted_ = true;
    if (call.finished_ && call.out_.empty()) {
      SubmitStatusOnly(call);
    } else {
      Submit(call);
    }
  } else if (call.deferred_) {
    call.deferred_ = false;
    nghttp2_session_resume_data(h2_, call.id_);
  }
  if (!busy_) observer_.OnOutput();
}

std::size_t Session::TakeOut(Call& call, std::uint8_t* to, std::size_t room) {
  const std::size_t take = std::min(room, call.backlog());
  std::memcpy(to, call.out_.data() + call.out_sent_, take);
  call.out_sent_ += take;
  unsent_ -= take;
  taken_ += take;
  Account();
  if (call.backlog() == 0) {
    call.out_.clear();
    call.out_sent_ = 0;
  } else if (call.out_sent_ > options_.stream_backlog_bytes) {
    call.out_.erase(0, std::exchange(call.out_sent_, 0));
  }
  Unblock(call);
  return take;
}

}  // namespace weir::grpc
