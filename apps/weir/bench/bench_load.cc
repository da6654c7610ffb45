#include "bench/bench_load.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <random>
#include <thread>

#include "remote/service_client.h"

namespace weir::app {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

constexpr std::size_t kMaxUnderWay = 1 << 14;  // per connection in an open loop

/// One connection and its requests under way. Not thread-safe.
struct Peer {
  int fd = -1;
  std::unique_ptr<BenchWire> wire;
  std::string out;
  std::size_t sent = 0;
  std::uint64_t asked = 0;
  std::uint64_t answered = 0;
  std::vector<std::int64_t> due = std::vector<std::int64_t>(kMaxUnderWay);

  std::size_t under_way() const { return asked - answered; }
};

/// The connections of one thread. Not thread-safe, except `answered`.
class Worker {
 public:
  Worker(const LoadOptions& options, std::size_t index) : options_(options), random_(index + 1) {}
  ~Worker() {
    for (const Peer& peer : peers_) {
      if (peer.fd >= 0) close(peer.fd);
    }
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Status Connect(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      Peer& peer = peers_.emplace_back();
      peer.fd = ConnectTcp(options_.host, options_.port);
      if (peer.fd < 0) {
        return Error{Code::kUnavailable, options_.host + ":" + options_.port + ": cannot connect"};
      }
      const int on = 1;
      setsockopt(peer.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      peer.wire = options_.make_wire();
      peer.wire->Begin(peer.out);
      while (!peer.wire->open() && status_.ok()) Shake(peer);
      if (!status_.ok()) return status_;
    }
    return {};
  }

  /// Sends `questions` at most, and returns when all are answered.
  void Run(std::int64_t start, std::int64_t end, double rate, std::uint64_t questions) {
    left_ = questions;
    std::int64_t at = start;
    const double gap = rate > 0 ? 1e9 / rate : 0;
    std::vector<pollfd> polled(peers_.size());
    for (double next = 0; at < end && status_.ok() && (left_ > 0 || under_way() > 0); at = Now()) {
      if (rate > 0) {
        AskWhatIsDue(start, at, gap, next);
      } else {
        for (Peer& peer : peers_) {
          while (peer.under_way() < options_.pipeline && left_ > 0) Ask(peer, at);
        }
      }
      for (Peer& peer : peers_) Send(peer);
      Wait(polled, rate > 0 && left_ > 0 ? start + static_cast<std::int64_t>(next * gap) : end);
    }
  }

  LoadResult& result() { return result_; }
  const Status& status() const { return status_; }
  std::uint64_t answered() const { return answered_.load(std::memory_order_relaxed); }
  std::uint64_t under_way() const {
    std::uint64_t sum = 0;
    for (const Peer& peer : peers_) sum += peer.under_way();
    return sum;
  }

 private:
  /// One step of a handshake: sends what is pending and waits for an answer.
  void Shake(Peer& peer) {
    Send(peer);
    if (status_.ok()) Receive(peer, 0);
  }

  void AskWhatIsDue(std::int64_t start, std::int64_t at, double gap, double& next) {
    std::size_t full = 0;
    while (start + static_cast<std::int64_t>(next * gap) <= at && full < peers_.size() &&
           left_ > 0) {
      Peer& peer = peers_[turn_++ % peers_.size()];
      if (peer.under_way() >= kMaxUnderWay - 1) {
        ++full;
        continue;
      }
      full = 0;
      Ask(peer, start + static_cast<std::int64_t>(next * gap));
      next += 1;
    }
  }

  void Ask(Peer& peer, std::int64_t due) {
    key_ = "bench-" + std::to_string(random_() % options_.keys);
    peer.due[peer.asked++ % kMaxUnderWay] = due;
    peer.wire->Ask(key_, peer.out);
    --left_;
  }

  void Send(Peer& peer) {
    while (peer.sent < peer.out.size()) {
      const ssize_t sent = send(peer.fd, peer.out.data() + peer.sent, peer.out.size() - peer.sent,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR) Lost();
        return;
      }
      peer.sent += static_cast<std::size_t>(sent);
    }
    peer.out.clear();
    peer.sent = 0;
  }

  void Wait(std::vector<pollfd>& polled, std::int64_t until) {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const bool writes = peers_[i].sent < peers_[i].out.size();
      polled[i] = {peers_[i].fd, static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0};
    }
    const std::int64_t left = std::clamp<std::int64_t>(until - Now(), 0, 100'000'000);
    const timespec patience{0, left};
    if (ppoll(polled.data(), polled.size(), &patience, nullptr) <= 0) return;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if ((polled[i].revents & ~POLLOUT) != 0) Receive(peers_[i], MSG_DONTWAIT);
    }
  }

  void Receive(Peer& peer, int flags) {
    const ssize_t got = recv(peer.fd, buffer_.data(), buffer_.size(), flags);
    // Without MSG_DONTWAIT, EAGAIN means that there was no answer in time.
    if (got < 0 && (errno == EINTR || (errno == EAGAIN && flags != 0))) return;
    if (got <= 0) return Lost();
    replies_.clear();
    if (!peer.wire->Take({buffer_.data(), static_cast<std::size_t>(got)}, replies_, peer.out)) {
      status_ =
          Error{Code::kUnavailable, options_.host + ":" + options_.port + ": " + peer.wire->why()};
      return;
    }
    const std::int64_t now = Now();
    for (const HeardReply& reply : replies_) {
      result_.latency.Add(now - peer.due[reply.number % kMaxUnderWay]);
      ++(reply.what == Heard::kAllowed   ? result_.allowed
         : reply.what == Heard::kLimited ? result_.limited
                                         : result_.errors);
    }
    peer.answered += replies_.size();
    answered_.fetch_add(replies_.size(), std::memory_order_relaxed);
  }

  void Lost() {
    status_ = Error{Code::kUnavailable, options_.host + ":" + options_.port + ": connection lost"};
  }

  const LoadOptions& options_;
  std::mt19937_64 random_;
  std::deque<Peer> peers_;
  std::size_t turn_ = 0;
  std::uint64_t left_ = 0;  // questions not asked yet
  std::string key_;
  std::string buffer_ = std::string(std::size_t{1} << 16U, '\0');
  std::vector<HeardReply> replies_;
  LoadResult result_;
  Status status_;
  std::atomic<std::uint64_t> answered_{0};
};

/// How many workers still run. Thread-safe.
class Running {
 public:
  explicit Running(std::size_t count) : count_(count) {}
  void OneIsDone() {
    const std::lock_guard lock(mutex_);
    --count_;
    done_.notify_all();
  }
  /// Whether all are done; waits until `moment` at most.
  bool DoneBy(std::int64_t moment) {
    std::unique_lock lock(mutex_);
    return done_.wait_for(lock, std::chrono::nanoseconds(moment - Now()),
                          [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::size_t count_;
};

/// Watches the workers until the end, a second at a time.
std::vector<double> Watch(const LoadOptions& options,
                          const std::vector<std::unique_ptr<Worker>>& workers, Running& running,
                          std::int64_t start, std::int64_t end) {
  std::vector<double> per_second;
  std::uint64_t before = 0;
  bool done = false;
  for (std::int64_t at = start; at < end && !done;) {
    std::int64_t next = std::min(end, at + 1'000'000'000);
    done = running.DoneBy(next);
    if (done) next = std::max(at + 1, std::min(next, Now()));
    std::uint64_t answered = 0;
    for (const auto& worker : workers) answered += worker->answered();
    per_second.push_back(static_cast<double>(answered - before) * 1e9 /
                         static_cast<double>(next - at));
    before = answered;
    at = next;
    if (options.on_progress) {
      options.on_progress(static_cast<double>(at - start) / 1e9, answered);
    }
  }
  return per_second;
}

/// The part of `whole` that is the `index`th of `parts` parts.
std::uint64_t Share(std::uint64_t whole, std::size_t index, std::size_t parts) {
  return whole / parts + (index < whole % parts ? 1 : 0);
}

}  // namespace

Result<LoadResult> RunLoad(const LoadOptions& options) {
  const std::size_t threads = std::min(options.threads, options.connections);
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t i = 0; i < threads; ++i) {
    workers.push_back(std::make_unique<Worker>(options, i));
    const std::size_t share = Share(options.connections, i, threads);
    if (Status connected = workers.back()->Connect(share); !connected.ok()) {
      return connected.error();
    }
  }
  const std::int64_t start = Now();
  const std::int64_t end = start + static_cast<std::int64_t>(options.seconds * 1e9);
  LoadResult sum;
  {
    Running running(threads);
    std::vector<std::jthread> runners;
    for (std::size_t i = 0; i < threads; ++i) {
      const std::uint64_t questions = options.requests == 0
                                          ? std::numeric_limits<std::uint64_t>::max() / 2
                                          : Share(options.requests, i, threads);
      runners.emplace_back([&, i, questions] {
        workers[i]->Run(start, end, options.rate / static_cast<double>(threads), questions);
        running.OneIsDone();
      });
    }
    sum.per_second = Watch(options, workers, running, start, end);
  }
  sum.seconds = static_cast<double>(Now() - start) / 1e9;
  for (const auto& worker : workers) {
    if (!worker->status().ok()) return worker->status().error();
    sum.allowed += worker->result().allowed;
    sum.limited += worker->result().limited;
    sum.errors += worker->result().errors;
    sum.unanswered += worker->under_way();
    sum.latency.Merge(worker->result().latency);
  }
  return sum;
}

}  // namespace weir::app
