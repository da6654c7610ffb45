#include "load.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>

#include "support/http_client.h"

namespace weir::bench {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "notify over HTTP: %s\n", why.c_str());
  std::exit(1);
}

std::string Request(long number, int users) {
  // Users in a scrambled order, each equally often.
  const long user = number * 7919 % users;
  const std::string body = R"({"userId":"user-)" + std::to_string(user) +
                           R"(","message":"your code is )" + std::to_string(number) + "\"}";
  return "POST /api/send HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// One keep-alive connection with one request under way. Not thread-safe.
struct Client {
  explicit Client(std::uint16_t port) : connection(port) {}
  test::TcpConnection connection;
  std::string received;
  Clock::time_point due;

  // Reads what is available; true once the response is complete.
  bool Receive() {
    std::array<char, 4096> buffer{};
    const ssize_t got = recv(connection.fd(), buffer.data(), buffer.size(), 0);
    if (got <= 0) Fail("the connection was closed");
    received.append(buffer.data(), static_cast<std::size_t>(got));
    return received.ends_with("}");
  }
};

class Driver {
 public:
  explicit Driver(const Load& load) : load_(load), poll_(epoll_create1(EPOLL_CLOEXEC)) {
    for (int i = 0; i < load.connections; ++i) {
      clients_.push_back(std::make_unique<Client>(load.port));
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.ptr = clients_.back().get();
      epoll_ctl(poll_, EPOLL_CTL_ADD, clients_.back()->connection.fd(), &event);
      idle_.push_back(clients_.back().get());
    }
  }
  ~Driver() { close(poll_); }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  LoadResult Run() {
    const auto begun = Clock::now();
    const auto end = begun + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(load_.seconds));
    auto next_due = begun;
    while (Clock::now() < end) {
      const auto now = Clock::now();
      while (!idle_.empty() && (load_.per_second == 0 || next_due <= now)) {
        Send(load_.per_second == 0 ? now : next_due);
        if (load_.per_second == 0) continue;
        next_due += std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double>(1 / load_.per_second));
      }
      Receive(load_.per_second == 0 ? 100 : 1);
    }
    return Sum(std::chrono::duration<double>(Clock::now() - begun).count());
  }

 private:
  void Send(Clock::time_point due) {
    Client* client = idle_.front();
    idle_.pop_front();
    client->due = due;
    client->connection.Send(Request(next_++, load_.users));
  }

  void Receive(int patience_ms) {
    std::array<epoll_event, 64> events{};
    const int ready =
        epoll_wait(poll_, events.data(), static_cast<int>(events.size()), patience_ms);
    for (int i = 0; i < ready; ++i) {
      auto* client = static_cast<Client*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (!client->Receive()) continue;
      if (client->received.starts_with("HTTP/1.1 200")) {
        latencies_.push_back(
            std::chrono::duration<double, std::milli>(Clock::now() - client->due).count());
      } else if (failed_++ == 0) {
        std::fprintf(stderr, "%s\n", client->received.c_str());
      }
      client->received.clear();
      idle_.push_back(client);
    }
  }

  LoadResult Sum(double seconds) {
    LoadResult result{.failed = failed_};
    if (latencies_.empty()) return result;
    std::sort(latencies_.begin(), latencies_.end());
    result.sends_per_s = static_cast<double>(latencies_.size()) / seconds;
    result.p50_ms = latencies_[latencies_.size() / 2];
    result.p99_ms = latencies_[latencies_.size() * 99 / 100];
    return result;
  }

  const Load load_;
  const int poll_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::deque<Client*> idle_;
  std::vector<double> latencies_;
  long next_ = 0;
  long failed_ = 0;
};

}  // namespace

void ConfigureUsers(std::uint16_t port, int users) {
  test::HttpClient http(port, "127.0.0.1", std::chrono::seconds(30));
  for (int user = 0; user < users; ++user) {
    const auto made = http.Post("/api/config", R"({"userId":"user-)" + std::to_string(user) +
                                                   R"(","rateLimit":1000000,"timeWindow":60})");
    if (made.status != 200) Fail(made.body);
  }
}

LoadResult Run(const Load& load) { return Driver(load).Run(); }

}  // namespace weir::bench
