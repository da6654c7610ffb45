#include "http_figures.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/http_client.h"

namespace weir::bench {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "slots over HTTP: %s\n", why.c_str());
  std::exit(1);
}

std::string EventBody(const std::string& id) {
  return R"({"eventId":")" + id +
         R"(","configName":"http","requestedTime":"2025-06-01T12:00:00Z"})";
}

std::string SingleRequest(const std::string& id) {
  const std::string body = EventBody(id);
  return "POST /api/v1/slots HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// One keep-alive connection with one request under way. Not thread-safe.
struct Client {
  explicit Client(std::uint16_t port) : connection(port) {}
  test::TcpConnection connection;
  std::string received;

  void Ask(const std::string& id) { connection.Send(SingleRequest(id)); }

  // Reads what is available; true once the response is complete.
  bool Receive() {
    std::array<char, 4096> buffer{};
    const ssize_t got = recv(connection.fd(), buffer.data(), buffer.size(), 0);
    if (got <= 0) Fail("the connection was closed");
    received.append(buffer.data(), static_cast<std::size_t>(got));
    if (!received.ends_with("}")) return false;
    if (!received.starts_with("HTTP/1.1 200")) Fail(received);
    received.clear();
    return true;
  }
};

}  // namespace

void MakeConfig(std::uint16_t port) {
  test::HttpClient http(port);
  const auto made = http.Post("/admin/rate-limit/config",
                              R"({"configName":"http","windowSize":"PT4S","maxPerWindow":100})");
  if (made.status != 201) Fail(made.body);
}

double MeasureSingles(std::uint16_t port, int clients, double seconds) {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  std::vector<std::unique_ptr<Client>> all;
  long next = 0;
  for (int i = 0; i < clients; ++i) {
    all.push_back(std::make_unique<Client>(port));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = all.back().get();
    epoll_ctl(poll, EPOLL_CTL_ADD, all.back()->connection.fd(), &event);
    all.back()->Ask("single-" + std::to_string(next++));
  }
  const auto begun = Clock::now();
  const auto end = begun + std::chrono::duration<double>(seconds);
  long done = 0;
  std::array<epoll_event, 64> events{};
  while (Clock::now() < end) {
    const int ready = epoll_wait(poll, events.data(), static_cast<int>(events.size()), 1000);
    for (int i = 0; i < ready; ++i) {
      auto* client = static_cast<Client*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (!client->Receive()) continue;
      ++done;
      client->Ask("single-" + std::to_string(next++));
    }
  }
  close(poll);
  return static_cast<double>(done) / std::chrono::duration<double>(Clock::now() - begun).count();
}

double MeasureBatches(std::uint16_t port, int count) {
  constexpr int kBatch = 10'000;
  std::atomic<int> next{0};
  const auto begun = Clock::now();
  std::vector<std::thread> senders;
  for (int s = 0; s < 2; ++s) {
    senders.emplace_back([&] {
      test::HttpClient http(port, "127.0.0.1", std::chrono::seconds(60));
      for (int from = next.fetch_add(kBatch); from < count; from = next.fetch_add(kBatch)) {
        std::string body = "{\"events\":[";
        for (int i = from; i < std::min(count, from + kBatch); ++i) {
          if (i > from) body += ',';
          body += EventBody("batch-" + std::to_string(i));
        }
        const auto answer = http.Post("/api/v1/slots/batch", body + "]}");
        if (answer.status != 200) Fail(answer.body);
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

}  // namespace weir::bench
