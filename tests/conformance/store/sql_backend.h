#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "conformance/store/store_backend.h"
#include "store/sql/pool.h"

namespace weir::store::conformance {

/// A separate database on a real server that all tests of the program share, and a pool for each
/// node. `open` is one kind's OpenPool.
template <typename Server, typename OpenPool>
class SqlBackend final : public Backend {
 public:
  SqlBackend(const Clock* clock, OpenPool open) : clock_(clock), open_(open) {
    static Server server;
    static int number = 0;
    url_ = server.CreateDatabase("limits" + std::to_string(++number));
  }

  std::unique_ptr<Store> MakeStore(boost::asio::io_context& io, int node) override {
    std::shared_ptr<sql::Pool>& pool = pools_[node];
    if (pool == nullptr) {
      sql::PoolOptions options;
      options.url = url_;
      options.clock = clock_;
      options.connections = 2;
      options.timeout = std::chrono::seconds(20);  // also enough under a sanitizer and load
      // As often as possible, so that rows are deleted under everything that the suite does.
      options.sweep_interval = std::chrono::milliseconds(1);
      options.sweep_grace = std::chrono::milliseconds(0);
      auto opened = open_(options);
      if (!opened.ok()) throw std::runtime_error(opened.error().message);
      pool = *opened;
    }
    return pool->MakeStore(io);
  }

 private:
  const Clock* clock_;
  const OpenPool open_;
  std::string url_;
  std::map<int, std::shared_ptr<sql::Pool>> pools_;
};

}  // namespace weir::store::conformance
