#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <thread>
#include <utility>

namespace weir {

/// A thread that runs one io_context, for connections and timers outside the reactors.
///
/// Thread-safe: Post from any thread. Start, Finish and Halt are for the owner.
class IoThread {
 public:
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        boost::asio::io_context::executor_type>;

  IoThread() : work_(boost::asio::make_work_guard(io_)) {}
  ~IoThread() { Halt(); }
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  boost::asio::io_context& io() noexcept { return io_; }
  std::thread::id id() const noexcept { return thread_.get_id(); }
  bool running() const noexcept { return thread_.joinable(); }

  void Start() {
    thread_ = std::thread([this] { io_.run(); });
  }

  /// After the thread has ended, nothing runs any more.
  template <typename Task>
  void Post(Task task) {
    boost::asio::post(io_, std::move(task));
  }

  /// Runs `last` on the thread, after everything posted before, and ends it. Requires Start.
  template <typename Last>
  void Finish(Last last) {
    Post([this, last = std::move(last)]() mutable {
      last();
      work_.reset();
      io_.stop();
    });
    thread_.join();
  }

  /// Ends it after the running handler. Pending handlers do not run, unless io() is run again.
  void Halt() {
    if (!running()) return;
    io_.stop();
    thread_.join();
  }

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace weir
