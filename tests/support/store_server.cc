#include "support/store_server.h"

#include <stdexcept>
#include <utility>

#include "support/mariadb_server.h"
#include "support/mysql_server.h"
#include "support/postgres_server.h"
#include "support/redis_cluster.h"
#include "support/redis_server.h"

namespace weir::test {
namespace {

class Postgres final : public StoreServer {
 public:
  std::string url() const override { return server_.tcp_url(); }
  void Kill() override { server_.Crash(); }
  void Start() override { server_.Start(); }
  void Pause() override { server_.Pause(); }
  void Resume() override { server_.Resume(); }

 private:
  PostgresServer server_;
};

template <typename Server>
class MysqlFamily final : public StoreServer {
 public:
  std::string url() const override { return server_.tcp_url(); }
  void Kill() override { server_.Crash(); }
  void Start() override { server_.Start(); }
  void Pause() override { server_.Pause(); }
  void Resume() override { server_.Resume(); }

 private:
  Server server_;
};

RedisOptions Durable() {
  RedisOptions options;
  options.durable = true;
  return options;
}

class Redis final : public StoreServer {
 public:
  std::string url() const override { return server_.url(); }
  void Kill() override { server_.Kill(); }
  void Start() override { server_.Start(); }
  void Pause() override { server_.Pause(); }
  void Resume() override { server_.Resume(); }

 private:
  RedisServer server_{Durable()};
};

/// Kill affects the first node; replicas lag, so nothing is promised then. Pause stops all nodes
/// together, so that none takes the place of another.
class Cluster final : public StoreServer {
 public:
  std::string url() const override { return cluster_.url(); }
  void Kill() override { cluster_.node(0).Kill(); }
  void Start() override { cluster_.node(0).Start(); }
  void Pause() override {
    for (std::size_t i = 0; i < cluster_.size(); ++i) cluster_.node(i).Pause();
  }
  void Resume() override {
    for (std::size_t i = 0; i < cluster_.size(); ++i) cluster_.node(i).Resume();
    cluster_.AwaitOk();
  }

 private:
  RedisCluster cluster_;
};

}  // namespace

std::unique_ptr<StoreServer> StoreServer::Make(std::string_view kind) {
  if (kind == "postgres") return std::make_unique<Postgres>();
  if (kind == "mariadb") return std::make_unique<MysqlFamily<MariadbServer>>();
  if (kind == "mysql") return std::make_unique<MysqlFamily<MysqlServer>>();
  if (kind == "mysql8") return std::make_unique<MysqlFamily<Mysql8Server>>();
  if (kind == "redis") return std::make_unique<Redis>();
  if (kind == "redis_cluster") return std::make_unique<Cluster>();
  throw std::runtime_error("no server of kind " + std::string(kind));
}

}  // namespace weir::test
