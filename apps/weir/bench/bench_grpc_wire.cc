#include <nghttp2/nghttp2.h>

#include <unordered_map>
#include <utility>

#include "bench/bench_wire.h"
#include "weir/v1/weir.pb.h"

namespace weir::app {
namespace {

nghttp2_nv Field(std::string_view name, std::string_view value) {
  // nghttp2 copies both, so nothing is written through these pointers.
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

/// weir.v1.Limiter/Check over nghttp2.
class GrpcWire final : public BenchWire {
 public:
  GrpcWire(std::string host, std::string scheme)
      : host_(std::move(host)), scheme_(std::move(scheme)) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
    nghttp2_session_client_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
  }
  ~GrpcWire() override { nghttp2_session_del(session_); }
  GrpcWire(const GrpcWire&) = delete;
  GrpcWire& operator=(const GrpcWire&) = delete;

  void Begin(std::string& out) override {
    constexpr std::int32_t kWindow = 1 << 24;
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindow}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, 1);
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kWindow);
    Flush(out);
  }

  void Ask(std::string_view key, std::string& out) override {
    request_.set_key(std::string(key));
    const std::string message = request_.SerializeAsString();
    const nghttp2_nv head[] = {Field(":method", "POST"),
                               Field(":scheme", scheme_),
                               Field(":path", "/weir.v1.Limiter/Check"),
                               Field(":authority", host_),
                               Field("te", "trailers"),
                               Field("content-type", "application/grpc")};
    nghttp2_data_provider provider{};
    provider.read_callback = OnRead;
    const std::int32_t id =
        nghttp2_submit_request(session_, nullptr, head, std::size(head), &provider, nullptr);
    Stream& stream = streams_[id];
    stream.number = next_++;
    const auto size = static_cast<std::uint32_t>(message.size());
    stream.question = {'\0', static_cast<char>(size >> 24U), static_cast<char>(size >> 16U),
                       static_cast<char>(size >> 8U), static_cast<char>(size)};
    stream.question += message;
    Flush(out);
  }

  bool Take(std::string_view bytes, std::vector<HeardReply>& replies, std::string& out) override {
    replies_ = &replies;
    const ssize_t taken = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    Flush(out);
    return taken == static_cast<ssize_t>(bytes.size());
  }

 private:
  struct Stream {
    std::uint64_t number = 0;
    std::string question;
    std::size_t sent = 0;
    std::string answer;
  };

  void Flush(std::string& out) {
    const std::uint8_t* bytes = nullptr;
    for (ssize_t size = 0; (size = nghttp2_session_mem_send(session_, &bytes)) > 0;) {
      out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    }
  }

  static ssize_t OnRead(nghttp2_session*, std::int32_t id, std::uint8_t* buffer, std::size_t room,
                        std::uint32_t* flags, nghttp2_data_source*, void* self) {
    Stream& stream = static_cast<GrpcWire*>(self)->streams_[id];
    const std::size_t size = std::min(room, stream.question.size() - stream.sent);
    stream.question.copy(reinterpret_cast<char*>(buffer), size, stream.sent);
    stream.sent += size;
    if (stream.sent == stream.question.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  }

  static int OnData(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                    std::size_t size, void* self) {
    static_cast<GrpcWire*>(self)->streams_[id].answer.append(reinterpret_cast<const char*>(data),
                                                             size);
    return 0;
  }

  static int OnClose(nghttp2_session*, std::int32_t id, std::uint32_t, void* self) {
    auto* wire = static_cast<GrpcWire*>(self);
    const auto found = wire->streams_.find(id);
    if (found == wire->streams_.end()) return 0;
    constexpr std::size_t kPrefix = 5;
    const Stream& stream = found->second;
    Heard what = Heard::kError;
    if (stream.answer.size() >= kPrefix &&
        wire->response_.ParseFromString(stream.answer.substr(kPrefix))) {
      what = wire->response_.verdict() == v1::ALLOWED ? Heard::kAllowed : Heard::kLimited;
    }
    wire->replies_->push_back({stream.number, what});
    wire->streams_.erase(found);
    return 0;
  }

  const std::string host_;
  const std::string scheme_;
  nghttp2_session* session_ = nullptr;
  std::unordered_map<std::int32_t, Stream> streams_;
  std::vector<HeardReply>* replies_ = nullptr;
  std::uint64_t next_ = 0;
  v1::CheckRequest request_;
  v1::CheckResponse response_;
};

}  // namespace

std::unique_ptr<BenchWire> MakeGrpcWire(std::string host, std::string scheme) {
  return std::make_unique<GrpcWire>(std::move(host), std::move(scheme));
}

}  // namespace weir::app
