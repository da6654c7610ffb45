#pragma once

// A gRPC client that exists only as bytes, for tests of the server's session: nghttp2's client side
// with a map of the answers. Exchange moves bytes between the two in pieces of any size.

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/grpc/session.h"

struct nghttp2_session;

namespace weir::grpc::testing {

/// A message with its prefix, as a DATA frame carries it.
std::string Framed(std::string_view message, char flag = 0);
std::string Framed(const google::protobuf::MessageLite& message);

/// Header fields added to those of every call; one of the same name replaces the default.
using Fields = std::vector<std::pair<std::string, std::string>>;

struct Answer {
  std::map<std::string, std::string> head;
  std::map<std::string, std::string> trailers;
  std::string body;
  bool headers_ended = false;
  bool closed = false;
  std::uint32_t error = 0;  ///< HTTP/2 error code with which it closed

  /// grpc-status, wherever it was sent; empty if it was not.
  std::string status() const;
  std::string message() const;
  /// The messages of the body; an incomplete one at its end is left out.
  std::vector<std::string> messages() const;
};

class H2Client {
 public:
  H2Client();
  ~H2Client();
  H2Client(const H2Client&) = delete;
  H2Client& operator=(const H2Client&) = delete;

  /// Starts a call with `body` as its data, and ends it unless `keep_open`.
  std::int32_t Call(const std::string& path, std::string body, const Fields& fields = {},
                    bool keep_open = false);
  /// More data for a call that was kept open.
  void Send(std::int32_t id, std::string_view data);
  void End(std::int32_t id);
  void Cancel(std::int32_t id);
  void Ping();

  const Answer& answer(std::int32_t id) { return answers_[id]; }
  /// Error code of the GOAWAY received, -1 if none; and its last stream.
  std::int64_t goaway() const noexcept { return goaway_; }
  std::int32_t goaway_last() const noexcept { return goaway_last_; }
  std::size_t pings_answered() const noexcept { return pings_answered_; }
  std::uint32_t peer_max_streams() const;

  /// The bytes that the client wants to send now.
  std::string Output();
  void Input(std::string_view bytes);

  /// Both ways until neither has anything to send, `piece` bytes at a time to the server. False
  /// once the server's session is over.
  bool Exchange(Session& server, std::size_t piece = 1 << 20);

  nghttp2_session* h2() noexcept { return h2_; }

 private:
  friend struct ClientCallbacks;
  struct Outgoing {
    std::string data;
    std::size_t sent = 0;
    bool ended = false;
    bool deferred = false;
  };

  nghttp2_session* h2_ = nullptr;
  std::map<std::int32_t, Outgoing> outgoing_;
  std::map<std::int32_t, Answer> answers_;
  std::int64_t goaway_ = -1;
  std::int32_t goaway_last_ = 0;
  std::size_t pings_answered_ = 0;
};

}  // namespace weir::grpc::testing
