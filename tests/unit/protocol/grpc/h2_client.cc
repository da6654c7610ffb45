#include "unit/protocol/grpc/h2_client.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>

namespace weir::grpc::testing {

std::string Framed(std::string_view message, char flag) {
  const auto size = static_cast<std::uint32_t>(message.size());
  std::string framed;
  framed.push_back(flag);
  for (int shift = 24; shift >= 0; shift -= 8) {
    framed.push_back(static_cast<char>((size >> static_cast<unsigned>(shift)) & 0xFFU));
  }
  return framed.append(message);
}

std::string Framed(const google::protobuf::MessageLite& message) {
  return Framed(message.SerializeAsString());
}

std::string Answer::status() const {
  const auto trailer = trailers.find("grpc-status");
  if (trailer != trailers.end()) return trailer->second;
  const auto field = head.find("grpc-status");
  return field == head.end() ? "" : field->second;
}

std::string Answer::message() const {
  const auto trailer = trailers.find("grpc-message");
  if (trailer != trailers.end()) return trailer->second;
  const auto field = head.find("grpc-message");
  return field == head.end() ? "" : field->second;
}

std::vector<std::string> Answer::messages() const {
  std::vector<std::string> messages;
  std::string_view rest = body;
  while (rest.size() >= 5) {
    std::size_t size = 0;
    for (std::size_t i = 1; i < 5; ++i) size = size * 256 + static_cast<unsigned char>(rest[i]);
    if (rest.size() < 5 + size) break;
    messages.emplace_back(rest.substr(5, size));
    rest.remove_prefix(5 + size);
  }
  return messages;
}

struct ClientCallbacks {
  static H2Client& Of(void* user) { return *static_cast<H2Client*>(user); }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                      std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                      std::uint8_t, void* user) {
    Answer& answer = Of(user).answers_[frame->hd.stream_id];
    auto& fields = answer.headers_ended ? answer.trailers : answer.head;
    fields.emplace(std::string(reinterpret_cast<const char*>(name), name_size),
                   std::string(reinterpret_cast<const char*>(value), value_size));
    return 0;
  }

  static int OnData(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                    std::size_t size, void* user) {
    Of(user).answers_[id].body.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    H2Client& client = Of(user);
    if (frame->hd.type == NGHTTP2_HEADERS)
      client.answers_[frame->hd.stream_id].headers_ended = true;
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) {
      ++client.pings_answered_;
    }
    if (frame->hd.type == NGHTTP2_GOAWAY) {
      client.goaway_ = frame->goaway.error_code;
      client.goaway_last_ = frame->goaway.last_stream_id;
    }
    return 0;
  }

  static int OnClose(nghttp2_session*, std::int32_t id, std::uint32_t error, void* user) {
    Answer& answer = Of(user).answers_[id];
    answer.closed = true;
    answer.error = error;
    return 0;
  }

  static ssize_t Read(nghttp2_session*, std::int32_t id, std::uint8_t* to, std::size_t room,
                      std::uint32_t* flags, nghttp2_data_source*, void* user) {
    H2Client::Outgoing& out = Of(user).outgoing_[id];
    const std::size_t left = out.data.size() - out.sent;
    if (left == 0 && !out.ended) {
      out.deferred = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    const std::size_t take = std::min(room, left);
    std::memcpy(to, out.data.data() + out.sent, take);
    out.sent += take;
    if (out.sent == out.data.size() && out.ended) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(take);
  }
};

H2Client::H2Client() {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, ClientCallbacks::OnHeader);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, ClientCallbacks::OnData);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, ClientCallbacks::OnFrame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, ClientCallbacks::OnClose);
  nghttp2_session_client_new(&h2_, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_submit_settings(h2_, NGHTTP2_FLAG_NONE, nullptr, 0);
}

H2Client::~H2Client() { nghttp2_session_del(h2_); }

std::int32_t H2Client::Call(const std::string& path, std::string body, const Fields& fields,
                            bool keep_open) {
  Fields all = {{":method", "POST"},
                {":scheme", "http"},
                {":path", path},
                {":authority", "test"},
                {"content-type", "application/grpc"},
                {"te", "trailers"}};
  for (const auto& field : fields) {
    const auto same = std::find_if(all.begin(), all.end(),
                                   [&field](const auto& one) { return one.first == field.first; });
    if (same == all.end()) {
      all.push_back(field);
    } else {
      same->second = field.second;
    }
  }
  std::vector<nghttp2_nv> nvs;
  for (auto& [name, value] : all) {
    nvs.push_back({reinterpret_cast<std::uint8_t*>(name.data()),
                   reinterpret_cast<std::uint8_t*>(value.data()), name.size(), value.size(),
                   NGHTTP2_NV_FLAG_NONE});
  }
  nghttp2_data_provider provider{};
  provider.read_callback = ClientCallbacks::Read;
  const bool no_body = body.empty() && !keep_open;
  const std::int32_t id = nghttp2_submit_request(h2_, nullptr, nvs.data(), nvs.size(),
                                                 no_body ? nullptr : &provider, nullptr);
  outgoing_[id] = {std::move(body), 0, !keep_open, false};
  return id;
}

void H2Client::Send(std::int32_t id, std::string_view data) {
  Outgoing& out = outgoing_[id];
  out.data.append(data);
  if (std::exchange(out.deferred, false)) nghttp2_session_resume_data(h2_, id);
}

void H2Client::End(std::int32_t id) {
  Outgoing& out = outgoing_[id];
  out.ended = true;
  if (std::exchange(out.deferred, false)) nghttp2_session_resume_data(h2_, id);
}

void H2Client::Cancel(std::int32_t id) {
  nghttp2_submit_rst_stream(h2_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
}

void H2Client::Ping() { nghttp2_submit_ping(h2_, NGHTTP2_FLAG_NONE, nullptr); }

std::uint32_t H2Client::peer_max_streams() const {
  return nghttp2_session_get_remote_settings(h2_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

std::string H2Client::Output() {
  std::string out;
  for (;;) {
    const std::uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(h2_, &data);
    if (size <= 0) return out;
    out.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
  }
}

void H2Client::Input(std::string_view bytes) {
  nghttp2_session_mem_recv(h2_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

bool H2Client::Exchange(Session& server, std::size_t piece) {
  bool open = true;
  for (;;) {
    const std::string to_server = Output();
    for (std::size_t at = 0; at < to_server.size(); at += piece) {
      open = server.Receive(std::string_view(to_server).substr(at, piece)) && open;
      while (open && server.paused()) open = server.Receive({});
    }
    std::string to_client;
    open = server.Fill(to_client, 1 << 16) && open;
    if (to_client.empty() && to_server.empty()) return open;
    Input(to_client);
  }
}

}  // namespace weir::grpc::testing
