#pragma once

// One call of a bidirectional gRPC method, as a client: HTTP/2 by libcurl, and the five bytes in
// front of every message. That is too little to need a gRPC library.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::xds {

/// The server's address and our credentials.
struct Server {
  std::string url;                        ///< grpc://host:port or grpcs://host:port
  std::vector<std::string> headers = {};  ///< "name: value"; secret
  std::string ca = {};                    ///< PEM file; empty: the system's authorities
  std::string certificate = {};  ///< PEM file with our certificate, with `key`; empty: none
  std::string key = {};
};

/// The largest message that is accepted.
inline constexpr std::size_t kMaxMessage = std::size_t{64} << 20U;

/// Thread safety: for one thread, except Wake.
class GrpcStream {
 public:
  /// Nothing is sent before the first Wait.
  GrpcStream(const Server& server, std::string_view path);
  ~GrpcStream();
  GrpcStream(const GrpcStream&) = delete;
  GrpcStream& operator=(const GrpcStream&) = delete;

  void Send(std::string_view message);
  /// The next message, if it has fully arrived.
  std::optional<std::string> Next();
  /// Sends and receives for a while: until something arrives, Wake, or `longest`. An error says why
  /// the call is over; messages that Next still returns arrived before.
  Status Wait(std::chrono::milliseconds longest);
  /// Ends the current Wait, or the next. Any thread.
  void Wake();

 private:
  struct Call;
  const std::unique_ptr<Call> call_;
};

}  // namespace weir::xds
