// The part of Session that deals with nghttp2: its callbacks, and what is submitted to it.

#include <nghttp2/nghttp2.h>

#include <array>

#include "base/recycler.h"
#include "protocol/grpc/method.h"
#include "protocol/grpc/session.h"

namespace weir::grpc {
namespace {

/// Heads that are somewhat too large are answered with a status. HPACK expands one byte to a field
/// of 4 KB, and nghttp2 examines each byte of it, so a head that is this many times too large is
/// not read any further.
constexpr std::size_t kMostUnfolded = 4;

std::string_view View(const std::uint8_t* data, std::size_t size) noexcept {
  return {reinterpret_cast<const char*>(data), size};
}

std::uint8_t* Bytes(std::string_view text) noexcept {
  // nghttp2's fields are not const, but it does not write to them.
  return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
}

/// A header field of literals, which nghttp2 need not copy.
nghttp2_nv Literal(std::string_view name, std::string_view value) noexcept {
  return {Bytes(name), Bytes(value), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

/// A field whose value nghttp2 copies.
nghttp2_nv Copied(std::string_view name, std::string_view value) noexcept {
  return {Bytes(name), Bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

// nghttp2 allocates for each stream, frame and set of fields. Sessions live on their reactor's
// thread, and so does what they allocate.
Recycler& OfThisThread() noexcept {
  thread_local Recycler recycler;
  return recycler;
}

nghttp2_mem& Memory() noexcept {
  static nghttp2_mem memory = {
      nullptr, [](std::size_t size, void*) { return OfThisThread().Take(size); },
      [](void* block, void*) { OfThisThread().GiveBack(block); },
      [](std::size_t count, std::size_t size, void*) {
        return OfThisThread().TakeZeroed(count, size);
      },
      [](void* block, std::size_t size, void*) { return OfThisThread().Resize(block, size); }};
  return memory;
}

bool EndsStream(const nghttp2_frame& frame) noexcept {
  return (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
}

}  // namespace

/// The C functions that nghttp2 calls. No exception may pass them; the only one possible is memory
/// exhaustion, which ends the program as everywhere else.
struct SessionCallbacks {
  static Session& Of(void* user) noexcept { return *static_cast<Session*>(user); }

  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Session& session = Of(user);
    session.head_bytes_ = 0;
    session.head_ =
        frame->headers.cat == NGHTTP2_HCAT_REQUEST ? &session.Begin(frame->hd.stream_id) : nullptr;
    return 0;
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                      std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                      std::uint8_t, void* user) {
    Session& session = Of(user);
    const std::size_t bytes = name_size + value_size + kFieldBytes;
    session.head_bytes_ += bytes;
    session.worked_ += bytes / 8;
    if (session.head_bytes_ > kMostUnfolded * session.options_.max_header_bytes) {
      // The stream is reset, and the rest of its fields goes into HPACK's table unread.
      session.head_ = nullptr;
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    // Fields of one head come one after the other.
    Call* call = session.head_;
    if (call != nullptr) session.OnHeader(*call, View(name, name_size), View(value, value_size));
    return 0;
  }

  static int OnData(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                    std::size_t size, void* user) {
    Session& session = Of(user);
    Call* call = session.Find(id);
    if (call != nullptr) {
      session.OnData(*call, View(data, size));
    } else {
      nghttp2_session_consume_connection(session.h2_, size);
    }
    return 0;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Session& session = Of(user);
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
        OnHeadersFrame(session, *frame);
        break;
      case NGHTTP2_DATA:
        if (Call* call = session.Find(frame->hd.stream_id); call != nullptr && EndsStream(*frame)) {
          session.OnEnd(*call);
        }
        break;
      case NGHTTP2_PING:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) session.OnPingAnswered();
        break;
      default:
        break;
    }
    return 0;
  }

  static void OnHeadersFrame(Session& session, const nghttp2_frame& frame) {
    session.head_ = nullptr;
    Call* call = session.Find(frame.hd.stream_id);
    if (call == nullptr) return;
    if (frame.headers.cat == NGHTTP2_HCAT_REQUEST) session.OnHead(*call);
    if (EndsStream(frame)) session.OnEnd(*call);
  }

  static int OnFrameSent(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Session& session = Of(user);
    if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR) {
      session.OnReset();
    }
    if (frame->hd.type == NGHTTP2_DATA) session.control_.Earn(2);
    if (frame->hd.type != NGHTTP2_HEADERS || !EndsStream(*frame)) return 0;
    Call* call = session.Find(frame->hd.stream_id);
    if (call != nullptr) session.OnAnswered(*call);
    return 0;
  }

  static int OnStreamClosed(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
    Session& session = Of(user);
    Call* call = session.Find(id);
    if (call == session.head_) session.head_ = nullptr;
    if (call != nullptr) session.OnClosed(*call);
    return 0;
  }

  static ssize_t ReadOut(nghttp2_session*, std::int32_t, std::uint8_t* to, std::size_t room,
                         std::uint32_t* flags, nghttp2_data_source* source, void* user) {
    Call& call = *static_cast<Call*>(source->ptr);
    if (call.backlog() == 0 && !call.finished_) {
      call.deferred_ = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    Session& session = Of(user);
    const std::size_t taken = session.TakeOut(call, to, room);
    if (call.finished_ && call.backlog() == 0) {
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      session.SubmitTrailers(call);
    }
    return static_cast<ssize_t>(taken);
  }

  static nghttp2_session_callbacks* Make() {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, OnBeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, OnFrameSent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnStreamClosed);
    return callbacks;
  }
};

Session::Session(const Services& services, const SessionOptions& options, const Clock& clock,
                 SessionObserver& observer)
    : services_(services),
      options_(options),
      clock_(clock),
      observer_(observer),
      link_(std::make_shared<Session*>(this)),
      control_(options.control_burst, options.control_rate,
               options.control_burst + kFramesPerCall * options.max_concurrent_streams,
               clock.Now()),
      resets_(options.reset_burst, options.reset_rate, options.reset_burst, clock.Now()) {
  static const nghttp2_session_callbacks* const kCallbacks = SessionCallbacks::Make();
  nghttp2_option* h2_options = nullptr;
  nghttp2_option_new(&h2_options);
  nghttp2_option_set_no_auto_window_update(h2_options, 1);
  nghttp2_option_set_no_closed_streams(h2_options, 1);
  // Session itself counts resets by both sides; with this nghttp2 would send INTERNAL_ERROR.
  nghttp2_option_set_stream_reset_rate_limit(h2_options, UINT64_MAX, UINT64_MAX);
  nghttp2_session_server_new3(&h2_, kCallbacks, this, h2_options, &Memory());
  nghttp2_option_del(h2_options);

  const std::array<nghttp2_settings_entry, 4> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options_.max_concurrent_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options_.stream_window_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
       static_cast<std::uint32_t>(options_.max_header_bytes)},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  }};
  nghttp2_submit_settings(h2_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(
      h2_, NGHTTP2_FLAG_NONE, 0, static_cast<std::int32_t>(options_.connection_window_bytes));
}

Session::~Session() {
  *link_ = nullptr;
  for (const auto& call : open_) {
    if (call->method_ != nullptr) call->method_->OnClose(*call);
  }
  nghttp2_session_del(h2_);
  services_.memory().Change(accounted_, 0);
}

bool Session::Feed(std::string_view bytes) {
  if (bytes.empty()) return true;
  const ssize_t taken = nghttp2_session_mem_recv(
      h2_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return taken == static_cast<ssize_t>(bytes.size());
}

bool Session::Receive(std::string_view bytes) {
  busy_ = true;
  worked_ = 0;
  bool taken = false;
  if (rest_.empty()) {
    taken = Take(bytes);
  } else {
    const std::string rest = std::exchange(rest_, {}).append(bytes);
    taken = Take(rest);
  }
  services_.EndBurst();
  RememberDeadlines();
  const std::size_t queued = nghttp2_session_get_outbound_queue_size(h2_);
  if (queued > options_.max_queued_frames + 2 * std::size_t{options_.max_concurrent_streams}) {
    Terminate(NGHTTP2_ENHANCE_YOUR_CALM);
  }
  busy_ = false;
  return taken && !terminated_;
}

bool Session::Fill(std::string& out, std::size_t enough) {
  busy_ = true;
  while (out.size() < enough) {
    const std::uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(h2_, &data);
    if (size <= 0) break;
    out.append(View(data, static_cast<std::size_t>(size)));
  }
  busy_ = false;
  NoteStall();
  return nghttp2_session_want_read(h2_) != 0 || nghttp2_session_want_write(h2_) != 0;
}

void Session::Drain() {
  if (draining_) return SubmitFinalGoaway();
  draining_ = true;
  // Calls that the peer has sent may still be on their way. The notice stops new ones, and when the
  // PING returns, everything sent before the notice arrived is here.
  nghttp2_submit_shutdown_notice(h2_);
  nghttp2_submit_ping(h2_, NGHTTP2_FLAG_NONE, nullptr);
  if (!busy_) observer_.OnOutput();
}

void Session::OnPingAnswered() {
  if (draining_) SubmitFinalGoaway();
}

void Session::SubmitFinalGoaway() {
  if (std::exchange(goaway_sent_, true)) return;
  nghttp2_submit_goaway(h2_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(h2_),
                        NGHTTP2_NO_ERROR, nullptr, 0);
  if (!busy_) observer_.OnOutput();
}

void Session::Submit(Call& call) {
  static const std::array<nghttp2_nv, 2> kHead = {Literal(":status", "200"),
                                                  Literal("content-type", "application/grpc")};
  nghttp2_data_provider provider;
  provider.source.ptr = &call;
  provider.read_callback = SessionCallbacks::ReadOut;
  nghttp2_submit_response(h2_, call.id_, kHead.data(), kHead.size(), &provider);
}

void Session::SubmitStatusOnly(Call& call) {
  std::array<nghttp2_nv, 5> head = {
      Literal(":status", "200"), Literal("content-type", "application/grpc"),
      Literal("grpc-status", StatusText(call.status_)),
      Copied("grpc-message", call.status_message_), Literal("grpc-accept-encoding", "identity")};
  const std::size_t count = call.encoded_ ? 5 : call.status_message_.empty() ? 3 : 4;
  nghttp2_submit_response(h2_, call.id_, head.data(), count, nullptr);
}

void Session::SubmitTrailers(Call& call) {
  const std::array<nghttp2_nv, 2> trailers = {Literal("grpc-status", StatusText(call.status_)),
                                              Copied("grpc-message", call.status_message_)};
  nghttp2_submit_trailer(h2_, call.id_, trailers.data(), call.status_message_.empty() ? 1 : 2);
}

void Session::SubmitHttpError(Call& call, std::string_view http_status) {
  call.finished_ = true;
  call.submitted_ = true;
  const nghttp2_nv head = Literal(":status", http_status);
  nghttp2_submit_response(h2_, call.id_, &head, 1, nullptr);
}

}  // namespace weir::grpc
