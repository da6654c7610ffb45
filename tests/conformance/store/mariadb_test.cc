#include <map>
#include <stdexcept>
#include <string>

#include "conformance/store/store_backend.h"
#include "store/mariadb/pool.h"
#include "support/mariadb_server.h"

namespace weir::store::conformance {
namespace {

test::MariadbServer& Server() {
  static test::MariadbServer server;
  return server;
}

class MariadbBackend final : public Backend {
 public:
  explicit MariadbBackend(const Clock* clock) : clock_(clock) {
    static int number = 0;
    url_ = Server().CreateDatabase("limits" + std::to_string(++number));
  }

  std::unique_ptr<Store> MakeStore(boost::asio::io_context& io, int node) override {
    std::shared_ptr<mariadb::Pool>& pool = pools_[node];
    if (pool == nullptr) {
      mariadb::Options options;
      options.url = url_;
      options.clock = clock_;
      options.connections = 2;
      options.timeout = std::chrono::seconds(20);  // under a sanitizer and load, too
      // As often as can be, so that rows vanish under everything that the suite does.
      options.sweep_interval = std::chrono::milliseconds(1);
      options.sweep_grace = std::chrono::milliseconds(0);
      auto opened = mariadb::Pool::Open(options);
      if (!opened.ok()) throw std::runtime_error(opened.error().message);
      pool = *opened;
    }
    return pool->MakeStore(io);
  }

 private:
  const Clock* clock_;
  std::string url_;
  std::map<int, std::shared_ptr<mariadb::Pool>> pools_;
};

}  // namespace

std::unique_ptr<Backend> MakeBackend(const Clock* clock) {
  return std::make_unique<MariadbBackend>(clock);
}

}  // namespace weir::store::conformance
