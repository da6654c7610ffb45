#include "metrics_door.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>

#include "config/config.h"

namespace weir::app {
namespace {

constexpr std::size_t kMaxHead = 4096;
constexpr int kPollMillis = 200;

Error Problem(const std::string& address, const std::string& why) {
  return {Code::kInvalidArgument, "--metrics " + address + ": " + why};
}

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

Result<config::Address> Parse(const std::string& address) {
  // Without a host it stays on this machine, since it asks for no key.
  const std::optional<config::Address> parsed =
      config::Address::Parse(address.starts_with(':') ? address.substr(1) : address);
  if (parsed && !parsed->off) return *parsed;
  return Problem(address, "must be an IP address and port such as 127.0.0.1:9464, or a port");
}

Result<int> Listen(const std::string& address) {
  const Result<config::Address> parsed = Parse(address);
  if (!parsed.ok()) return parsed.error();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST;
  addrinfo* list = nullptr;
  const int failed =
      getaddrinfo(parsed->host.c_str(), std::to_string(parsed->port).c_str(), &hints, &list);
  if (failed != 0) return Problem(address, gai_strerror(failed));
  const std::unique_ptr<addrinfo, FreeAddresses> found(list);
  const int listener = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (listener < 0 || bind(listener, found->ai_addr, found->ai_addrlen) != 0 ||
      listen(listener, 16) != 0) {
    // The address may become free: a retry may help.
    const Error error{
        Code::kUnavailable,
        Problem(address, std::error_code(errno, std::generic_category()).message()).message};
    if (listener >= 0) close(listener);
    return error;
  }
  return listener;
}

std::string Named(int listener) {
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &size);
  getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, host.data(), host.size(), port.data(),
              port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  return std::string(host.data()) + ":" + port.data();
}

/// The request up to the end of its head, or as much as arrived in time.
std::string ReadHead(int peer) {
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + std::chrono::seconds(2);
  std::string head;
  std::array<char, 1024> part{};
  while (head.size() < kMaxHead && head.find("\r\n\r\n") == std::string::npos) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
    pollfd ready{.fd = peer, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) <= 0) break;
    const ssize_t got = recv(peer, part.data(), part.size(), 0);
    if (got <= 0) break;
    head.append(part.data(), static_cast<std::size_t>(got));
  }
  return head;
}

}  // namespace

Status MetricsDoor::Check(const std::string& address) {
  const Result<config::Address> parsed = Parse(address);
  return parsed.ok() ? Status() : Status(parsed.error());
}

Result<std::unique_ptr<MetricsDoor>> MetricsDoor::Open(const std::string& address,
                                                       const telemetry::Registry& registry,
                                                       std::ostream& told) {
  const Result<int> listener = Listen(address);
  if (!listener.ok()) return listener.error();
  told << "listening metrics " << Named(*listener) << std::endl;
  return std::unique_ptr<MetricsDoor>(new MetricsDoor(*listener, registry));
}

MetricsDoor::MetricsDoor(int socket, const telemetry::Registry& registry)
    : socket_(socket),
      registry_(registry),
      thread_([this](const std::stop_token& stop) { Serve(stop); }) {}

MetricsDoor::~MetricsDoor() {
  thread_.request_stop();
  thread_.join();
  close(socket_);
}

void MetricsDoor::Serve(const std::stop_token& stop) const {
  while (!stop.stop_requested()) {
    pollfd ready{.fd = socket_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kPollMillis) <= 0) continue;
    const int peer = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer < 0) continue;
    const timeval patience{.tv_sec = 2, .tv_usec = 0};
    setsockopt(peer, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    Answer(peer);
    close(peer);
  }
}

void MetricsDoor::Answer(int peer) const {
  const std::string head = ReadHead(peer);
  const bool known = head.starts_with("GET /metrics ") || head.starts_with("GET /metrics?");
  const bool alive = head.starts_with("GET /healthz ");
  const std::string body = known ? registry_.Render() : alive ? "ok\n" : "not found\n";
  const std::string answer = std::string("HTTP/1.1 ") +
                             (known || alive ? "200 OK" : "404 Not Found") +
                             "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8"
                             "\r\nConnection: close\r\nContent-Length: " +
                             std::to_string(body.size()) + "\r\n\r\n" + body;
  std::string_view rest = answer;
  while (!rest.empty()) {
    const ssize_t sent = send(peer, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace weir::app
