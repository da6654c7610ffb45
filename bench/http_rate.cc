// http_rate PORT RATE SECONDS CONNECTIONS weir|nginx: sends requests at a constant rate, whether or
// not they are answered, and prints the latencies. Request i is due at i / RATE; its latency is
// measured from then, so a server that pauses is charged for every request it delayed, including
// those that found no free connection. Between requests the program spins: a timer adds delay.
//
// Prints one line: rate, p50, p99 and p99.9 in microseconds, and how late the program itself was
// in sending (p99), which is not the server's fault.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace weir::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

struct Client {
  int fd = -1;
  SteadyClock::time_point due;
  std::string reply;
};

int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    Die("http_rate: connect");
  }
  return fd;
}

std::string RequestOf(std::string_view kind, std::uint64_t n) {
  const std::string user = "user-" + std::to_string(n % 10'000);
  if (kind == "nginx") return "GET / HTTP/1.1\r\nHost: bench\r\nX-User: " + user + "\r\n\r\n";
  const std::string body = R"({"descriptors":[{"user":")" + user + R"("}]})";
  return "POST /v1/check HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// True once `reply` holds a complete response with status 200.
bool IsWhole(const std::string& reply) {
  const std::size_t head = reply.find("\r\n\r\n");
  if (head == std::string::npos) return false;
  if (!reply.starts_with("HTTP/1.1 200")) {
    std::fprintf(stderr, "http_rate: answered %s\n", reply.substr(0, 40).c_str());
    std::exit(1);
  }
  constexpr std::string_view kLength = "Content-Length: ";
  const std::size_t at = reply.find(kLength);
  const std::size_t size =
      at < head ? std::strtoull(reply.c_str() + at + kLength.size(), nullptr, 10) : 0;
  return reply.size() >= head + 4 + size;
}

class Load {
 public:
  Load(int port, double rate, std::size_t connections, std::string_view kind)
      : interval_(std::chrono::duration_cast<SteadyClock::duration>(
            std::chrono::duration<double>(1 / rate))) {
    for (std::uint64_t i = 0; i < requests_.size(); ++i) requests_[i] = RequestOf(kind, i * 7919);
    epoll_ = epoll_create1(0);
    clients_.resize(connections);
    for (std::size_t i = 0; i < connections; ++i) {
      clients_[i].fd = Connect(port);
      epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
      if (epoll_ctl(epoll_, EPOLL_CTL_ADD, clients_[i].fd, &event) != 0) Die("http_rate: epoll");
      free_.push_back(i);
    }
  }

  void Run(std::chrono::duration<double> length) {
    latencies_.clear();
    lateness_.clear();
    const auto start = SteadyClock::now();
    const auto end = start + std::chrono::duration_cast<SteadyClock::duration>(length);
    auto due = start;
    for (auto now = start; now < end || free_.size() < clients_.size(); now = SteadyClock::now()) {
      for (; due <= now && due < end && !free_.empty(); due += interval_) Send(due);
      Collect();
    }
    took_ = SteadyClock::now() - start;
  }

  void Print() {
    std::ranges::sort(latencies_);
    std::ranges::sort(lateness_);
    const auto at = [](const std::vector<double>& sorted, double part) {
      return sorted[static_cast<std::size_t>(static_cast<double>(sorted.size() - 1) * part)];
    };
    std::printf("rate %.0f p50 %.1f p99 %.1f p999 %.1f late99 %.1f\n",
                static_cast<double>(latencies_.size()) / took_.count(), at(latencies_, 0.5),
                at(latencies_, 0.99), at(latencies_, 0.999), at(lateness_, 0.99));
  }

 private:
  void Send(SteadyClock::time_point due) {
    Client& client = clients_[free_.front()];
    // The one idle for longest, so that all are used equally.
    free_.erase(free_.begin());
    const std::string& request = requests_[sent_++ % requests_.size()];
    client.due = due;
    lateness_.push_back(Micros(SteadyClock::now() - due).count());
    if (send(client.fd, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size())) {
      Die("http_rate: send");
    }
  }

  void Collect() {
    std::array<epoll_event, 64> events;
    const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) Receive(events[static_cast<std::size_t>(i)].data.u64);
  }

  void Receive(std::size_t index) {
    Client& client = clients_[index];
    std::array<char, 4096> bytes;
    const ssize_t size = recv(client.fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) Die("http_rate: receive");
    client.reply.append(bytes.data(), static_cast<std::size_t>(size));
    if (!IsWhole(client.reply)) return;
    latencies_.push_back(Micros(SteadyClock::now() - client.due).count());
    client.reply.clear();
    free_.push_back(index);
  }

  const SteadyClock::duration interval_;
  std::array<std::string, 1000> requests_;
  int epoll_ = -1;
  std::vector<Client> clients_;
  std::vector<std::size_t> free_;
  std::uint64_t sent_ = 0;
  std::vector<double> latencies_;
  std::vector<double> lateness_;
  std::chrono::duration<double> took_{};
};

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: http_rate PORT RATE SECONDS CONNECTIONS weir|nginx\n");
    return 2;
  }
  weir::bench::Load load(std::atoi(argv[1]), std::atof(argv[2]),
                         static_cast<std::size_t>(std::atoi(argv[4])), argv[5]);
  load.Run(std::chrono::duration<double>(0.5));  // warm-up; each run is counted separately
  load.Run(std::chrono::duration<double>(std::atof(argv[3])));
  load.Print();
}
