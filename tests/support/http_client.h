#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/tcp_connection.h"

namespace weir::test {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;
  std::string body;

  /// The first header of this name, case-insensitive; empty if there is none.
  std::string_view Header(std::string_view name) const noexcept;
  bool HasHeader(std::string_view name) const noexcept;
};

/// A blocking HTTP/1.1 client for tests that keeps its connection alive, and reconnects after the
/// server has sent `Connection: close`. Raw bytes may be sent and answers read one by one, for
/// pipelining and for deliberately invalid requests. Errors throw std::runtime_error.
///
/// Not thread-safe: one client, one thread.
class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port, std::string host = "127.0.0.1",
                      std::chrono::milliseconds timeout = TcpConnection::kTimeout);

  HttpResponse Get(std::string_view target, const HttpHeaders& headers = {});
  /// Sends Content-Type: application/json unless `headers` has another one.
  HttpResponse Post(std::string_view target, std::string_view body,
                    const HttpHeaders& headers = {});
  HttpResponse Send(std::string_view method, std::string_view target, std::string_view body = {},
                    const HttpHeaders& headers = {});

  /// Writes the bytes as they are.
  void SendRaw(std::string_view bytes);
  /// Reads the next answer. `method` of its request matters only for HEAD.
  HttpResponse ReadResponse(std::string_view method = "GET");

  /// The underlying connection, opened if there is none.
  TcpConnection& connection();
  void Disconnect() { connection_.reset(); }

 private:
  std::string ReadBody(const HttpResponse& response, std::string_view method);
  std::string ReadChunks();

  std::uint16_t port_;
  std::string host_;
  std::chrono::milliseconds timeout_;
  std::optional<TcpConnection> connection_;
};

}  // namespace weir::test
