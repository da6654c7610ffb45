#include "service_client.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace weir::app {
namespace {

constexpr int kTimeoutSeconds = 120;
constexpr std::size_t kMaxAnswer = std::size_t{1} << 30U;

Error Unreachable(const std::string& where, const char* what) {
  return {Code::kUnavailable, where + ": " + what};
}

/// Closes itself. Not thread-safe.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool ok() const { return fd_ >= 0; }

  bool Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// Everything until the peer closes.
  bool ReceiveAll(std::string& out) const {
    std::string buffer(std::size_t{1} << 16U, '\0');
    while (out.size() < kMaxAnswer) {
      const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
      if (got < 0) return false;
      if (got == 0) return true;
      out.append(buffer, 0, static_cast<std::size_t>(got));
    }
    return false;
  }

 private:
  int fd_;
};

void ReadHeaders(std::string_view head, ServiceReply& reply) {
  while (!head.empty()) {
    const std::size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    reply.headers.emplace_back(std::move(name), std::string(line.substr(colon + 2)));
  }
}

}  // namespace

std::string_view ServiceReply::Header(std::string_view name) const noexcept {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

int ConnectTcp(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return -1;
  int fd = -1;
  for (const addrinfo* at = found; at != nullptr && fd < 0; at = at->ai_next) {
    fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
      close(fd);
      fd = -1;
    }
  }
  freeaddrinfo(found);
  const timeval patience{kTimeoutSeconds, 0};
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  return fd;
}

Result<ServiceClient> ServiceClient::For(const std::string& url, std::string key) {
  constexpr std::string_view kScheme = "http://";
  std::string rest = url.starts_with(kScheme) ? url.substr(kScheme.size()) : url;
  while (!rest.empty() && rest.back() == '/') rest.pop_back();
  if (rest.empty() || rest.find('/') != std::string::npos) {
    return Error{Code::kInvalidArgument, "--url must be like http://127.0.0.1:8080"};
  }
  if (key.find_first_of("\r\n") != std::string::npos) {
    return Error{Code::kInvalidArgument, "--key must be one line"};
  }
  const std::size_t colon = rest.rfind(':');
  const bool has_port = colon != std::string::npos && !rest.ends_with(']');
  std::string host = rest.substr(0, has_port ? colon : rest.size());
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return ServiceClient(std::move(host), has_port ? rest.substr(colon + 1) : "80", std::move(key));
}

Result<ServiceReply> ServiceClient::Send(std::string_view method, std::string_view target,
                                         std::string_view body) const {
  const Socket socket(ConnectTcp(host_, port_));
  if (!socket.ok()) return Unreachable(where(), "cannot connect; is `weir serve` running there?");
  std::string request(method);
  request.append(" ").append(target).append(" HTTP/1.1\r\nHost: ").append(where());
  request += "\r\nConnection: close\r\nContent-Type: application/json\r\n";
  if (!key_.empty()) request += "X-API-Key: " + key_ + "\r\n";
  request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  request += body;
  std::string answer;
  // A server may refuse a large body before it has read all of it: the answer counts.
  const bool sent = socket.Send(request);
  const bool received = socket.ReceiveAll(answer);
  const std::size_t head = answer.find("\r\n\r\n");
  if (answer.empty() && !(sent && received)) {
    return Unreachable(where(), "the connection was lost");
  }
  if (head == std::string::npos || !answer.starts_with("HTTP/1.1 ") || answer.size() < 12) {
    return Unreachable(where(), "the answer is not HTTP");
  }
  ServiceReply reply;
  std::from_chars(answer.data() + 9, answer.data() + 12, reply.status);
  ReadHeaders(std::string_view(answer).substr(0, head), reply);
  reply.body = answer.substr(head + 4);
  return reply;
}

std::string UrlEscaped(std::string_view text) {
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
    }
  }
  return out;
}

}  // namespace weir::app
