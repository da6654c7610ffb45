#include "support/redis_cluster.h"

#include <stdexcept>
#include <string>

#include "conformance/store/store_backend.h"
#include "store/redis/redis_store.h"

namespace weir::store::conformance {
namespace {

test::RedisCluster& Cluster() {
  static test::RedisCluster cluster;
  return cluster;
}

class RedisClusterBackend final : public Backend {
 public:
  explicit RedisClusterBackend(const Clock* clock) : clock_(clock) {
    for (std::size_t i = 0; i < test::RedisCluster::kMasters; ++i) {
      Cluster().node(i).Command({"FLUSHALL"});
    }
  }

  std::unique_ptr<Store> MakeStore(boost::asio::io_context& io, int) override {
    auto store = redis::MakeStore(
        io, {.url = Cluster().url(), .command_timeout = std::chrono::seconds(20), .clock = clock_});
    if (!store.ok()) throw std::runtime_error(store.error().message);
    return *std::move(store);
  }

 private:
  const Clock* clock_;
};

}  // namespace

std::unique_ptr<Backend> MakeBackend(const Clock* clock) {
  return std::make_unique<RedisClusterBackend>(clock);
}

}  // namespace weir::store::conformance
