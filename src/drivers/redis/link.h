#pragma once

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "drivers/io_thread.h"
#include "drivers/redis/connection.h"
#include "drivers/redis/reply.h"
#include "drivers/redis/stream.h"
#include "weir/result.h"

namespace weir::redis {

/// How long to wait before the next attempt to connect: doubles with every failure, less a random
/// share of up to a half, so that clients that lost the same server do not return together.
///
/// Not thread-safe.
class Backoff {
 public:
  using Delay = std::chrono::microseconds;

  Backoff(Delay first, Delay longest) : first_(first), longest_(longest) {}

  Delay Next() {
    const Delay delay = std::min(longest_, first_ * (1 << std::min(failures_, 16)));
    ++failures_;
    std::uniform_int_distribution<Delay::rep> share(delay.count() / 2, delay.count());
    return Delay(share(random_));
  }
  void Reset() noexcept { failures_ = 0; }

 private:
  Delay first_;
  Delay longest_;
  int failures_ = 0;
  std::minstd_rand random_{std::random_device{}()};
};

/// The parts that every connection to a server needs: a Stream per attempt to connect, and a
/// reader that turns its bytes into replies.
///
/// Thread safety: belongs to the thread that runs `io`; shared, because the stream's callbacks may
/// arrive after its owner has released it.
class Link : public std::enable_shared_from_this<Link> {
 public:
  virtual ~Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

 protected:
  using Clock = std::chrono::steady_clock;

  Link(boost::asio::io_context& io, ConnectionOptions options);

  virtual void Opened() = 0;
  virtual void TakeReply(Reply reply) = 0;
  virtual void Lose(const std::string& why, Code code) = 0;
  void Lose(const std::string& why) { Lose(why, Code::kUnavailable); }

  /// Starts connecting; Opened or Lose follows. Requires tls_.ok().
  void Open();
  /// Writes the commands that open a session; returns how many replies to expect.
  std::size_t Greet();
  /// Runs `handler` if this still exists and is not closed.
  template <typename Handler>
  auto Weak(Handler handler) {
    return [weak = weak_from_this(), handler = std::move(handler)](auto&&... arguments) {
      const std::shared_ptr<Link> self = weak.lock();
      if (self && !self->closed_) handler(std::forward<decltype(arguments)>(arguments)...);
    };
  }

  boost::asio::io_context& io_;
  const ConnectionOptions options_;
  const std::string name_;  // begins every error message
  IoThread::Timer timer_;
  const Result<TlsContext> tls_;
  bool closed_ = false;
  bool heard_ = false;  // something was received since it was last set to false
  std::unique_ptr<Stream> stream_;
  Backoff backoff_;

 private:
  void OnBytes(std::string_view bytes);

  std::unique_ptr<ReplyReader> reader_;
};

}  // namespace weir::redis
