#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

#include "store/redis/redis_store.h"

namespace weir::store::redis {

/// A store with blocking calls. Not thread-safe.
class Client {
 public:
  explicit Client(Options options) {
    auto store = MakeStore(io_, std::move(options));
    if (!store.ok()) throw std::runtime_error(store.error().message);
    store_ = *std::move(store);
  }

  void Apply(std::span<Application> batch) {
    bool done = false;
    store_->Apply(batch, [&done] { done = true; });
    Run([&done] { return done; });
    if (!done) std::terminate();  // the store may still write to the batch
  }

  /// One charge; `status` is that of the application.
  struct Answer {
    Status status;
    Decision decision;
    bool applied = false;
  };
  Answer One(Op op, Charge charge, std::int64_t lease = 0) {
    Answer answer;
    Application application;
    application.op = op;
    application.charges = std::span(&charge, 1);
    application.decisions = std::span(&answer.decision, 1);
    application.lease = lease;
    Apply(std::span(&application, 1));
    answer.status = application.status;
    answer.applied = application.applied;
    return answer;
  }

  template <typename Condition>
  void Run(Condition condition) {
    const auto work = boost::asio::make_work_guard(io_);
    io_.restart();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      io_.run_one_for(std::chrono::milliseconds(100));
    }
  }

  Store& store() { return *store_; }

 private:
  boost::asio::io_context io_{1};
  std::unique_ptr<Store> store_;
};

}  // namespace weir::store::redis
