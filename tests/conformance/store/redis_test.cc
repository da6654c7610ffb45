#include <stdexcept>
#include <string>

#include "conformance/store/store_backend.h"
#include "store/redis/redis_store.h"
#include "support/redis_server.h"

namespace weir::store::conformance {
namespace {

test::RedisServer& Server() {
  static test::RedisServer server;
  return server;
}

class RedisBackend final : public Backend {
 public:
  explicit RedisBackend(const Clock* clock) : clock_(clock) { Server().Command({"FLUSHALL"}); }

  std::unique_ptr<Store> MakeStore(boost::asio::io_context& io, int) override {
    auto store = redis::MakeStore(io, {.url = Server().url(),
                                       .connections = 2,
                                       .command_timeout = std::chrono::seconds(20),
                                       .clock = clock_});
    if (!store.ok()) throw std::runtime_error(store.error().message);
    return *std::move(store);
  }

 private:
  const Clock* clock_;
};

}  // namespace

std::unique_ptr<Backend> MakeBackend(const Clock* clock) {
  return std::make_unique<RedisBackend>(clock);
}

}  // namespace weir::store::conformance
