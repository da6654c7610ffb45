#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "conformance/store/store_backend.h"
#include "store/redis/redis_store.h"
#include "support/redis_server.h"

namespace weir::store::conformance {

/// A single server, with options in its URL. Not thread-safe.
class RedisBackend final : public Backend {
 public:
  RedisBackend(const Clock* clock, std::string options)
      : clock_(clock), options_(std::move(options)) {
    Server().Command({"FLUSHALL"});
  }

  std::unique_ptr<Store> MakeStore(boost::asio::io_context& io, int) override {
    auto store = redis::MakeStore(io, {.url = Server().url() + options_,
                                       .connections = 2,
                                       .command_timeout = std::chrono::seconds(20),
                                       .clock = clock_});
    if (!store.ok()) throw std::runtime_error(store.error().message);
    return *std::move(store);
  }

 private:
  static test::RedisServer& Server() {
    static test::RedisServer server;
    return server;
  }

  const Clock* clock_;
  const std::string options_;
};

}  // namespace weir::store::conformance
