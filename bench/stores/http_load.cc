#include "http_load.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "support/tcp_connection.h"

namespace weir::bench {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "checks over HTTP: %s\n", why.c_str());
  std::exit(1);
}

std::string RequestOf(std::size_t key) {
  const std::string body = R"({"key":"user-)" + std::to_string(key) + R"("})";
  return "POST /v1/check HTTP/1.1\r\nHost: bench\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// One connection with one check under way. Not thread-safe.
struct Client {
  explicit Client(std::uint16_t port) : connection(port) {}
  test::TcpConnection connection;
  std::string received = {};

  /// Reads what is available; true once the response is complete.
  bool Receive() {
    std::array<char, 4096> buffer{};
    const ssize_t got = recv(connection.fd(), buffer.data(), buffer.size(), 0);
    if (got <= 0) Fail("the connection was closed");
    received.append(buffer.data(), static_cast<std::size_t>(got));
    if (!received.ends_with("}")) return false;
    const bool decided = received.find("\"degraded\":true") == std::string::npos;
    if (!decided) Fail("decided without the store: " + received);
    received.clear();
    return true;
  }
};

}  // namespace

double MeasureHttp(std::uint16_t port, int clients, std::size_t keys, double seconds) {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  std::vector<std::unique_ptr<Client>> all;
  std::uint64_t sent = 0;
  const auto ask = [&](Client& client) { client.connection.Send(RequestOf(sent++ * 7919 % keys)); };
  for (int i = 0; i < clients; ++i) {
    all.push_back(std::make_unique<Client>(port));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = all.back().get();
    epoll_ctl(poll, EPOLL_CTL_ADD, all.back()->connection.fd(), &event);
    ask(*all.back());
  }
  const auto began = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - began).count(); };
  std::uint64_t answered = 0;
  std::array<epoll_event, 64> events{};
  while (elapsed() < seconds) {
    const int ready = epoll_wait(poll, events.data(), static_cast<int>(events.size()), 1000);
    for (int i = 0; i < ready; ++i) {
      auto& client = *static_cast<Client*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (!client.Receive()) continue;
      ++answered;
      ask(client);
    }
  }
  const double rate = static_cast<double>(answered) / elapsed();
  close(poll);
  return rate;
}

}  // namespace weir::bench
