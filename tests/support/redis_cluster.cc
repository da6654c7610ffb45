#include "support/redis_cluster.h"

#include <sstream>
#include <stdexcept>
#include <utility>

#include "support/wait.h"

namespace weir::test {
namespace {

constexpr unsigned kSlots = 16384;

void Require(bool happened, const char* what) {
  if (!happened) throw std::runtime_error(std::string("redis cluster: ") + what);
}

}  // namespace

RedisOptions RedisCluster::NodeOptions() const {
  RedisOptions node{
      .password = options_.password,
      .certificates = options_.certificates,
      .cluster = true,
      .settings = {"--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0",
                   "--cluster-replica-validity-factor", "0", "--cluster-require-full-coverage",
                   options_.replicas ? "yes" : "no"}};
  const auto add = [&node](const char* name, const std::string& value) {
    node.settings.insert(node.settings.end(), {name, value});
  };
  if (options_.certificates != nullptr) {
    add("--tls-cluster", "yes");
    add("--tls-replication", "yes");
  }
  if (!options_.password.empty()) add("--masterauth", options_.password);
  return node;
}

RedisCluster::RedisCluster(RedisClusterOptions options) : options_(std::move(options)) {
  const std::size_t masters = options_.masters;
  for (std::size_t i = 0; i < (options_.replicas ? 2 : 1) * masters; ++i) {
    nodes_.push_back(std::make_unique<RedisServer>(NodeOptions()));
    if (!options_.proxied) continue;
    proxies_.push_back(std::make_unique<CuttingProxy>(nodes_[i]->port()));
    nodes_[i]->Command(
        {"CONFIG", "SET", "cluster-announce-port", std::to_string(proxies_[i]->port())});
  }
  for (std::size_t i = 0; i < masters; ++i) {
    nodes_[i]->Command({"CLUSTER", "ADDSLOTSRANGE", std::to_string(i * kSlots / masters),
                        std::to_string((i + 1) * kSlots / masters - 1)});
    nodes_[i]->Command({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
  }
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    nodes_[i]->Command({"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes_[0]->port()),
                        std::to_string(nodes_[0]->bus_port())});
  }
  const auto knows_all = [this](std::size_t i) {
    return nodes_[i]
               ->Command({"CLUSTER", "INFO"})
               .find("cluster_known_nodes:" + std::to_string(nodes_.size())) != std::string::npos;
  };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Require(WaitUntil([&] { return knows_all(i); }), "the nodes do not meet");
  }
  for (std::size_t i = masters; i < nodes_.size(); ++i) {
    const std::string master = IdOf(i - masters);
    const auto replicates = [&] {
      return nodes_[i]->Command({"CLUSTER", "REPLICATE", master}) == "OK";
    };
    Require(WaitUntil(replicates), "a replica does not know its master");
  }
  for (std::size_t i = masters; i < nodes_.size(); ++i) {
    const auto in_step = [&] {
      return nodes_[i]->Command({"INFO", "replication"}).find("master_link_status:up") !=
             std::string::npos;
    };
    Require(WaitUntil(in_step), "a replica does not follow its master");
  }
  AwaitOk();
}

std::string RedisCluster::url() const {
  const bool tls = options_.certificates != nullptr;
  std::string url = tls ? "rediss+cluster://" : "redis+cluster://";
  if (!options_.password.empty()) url += ":" + options_.password + "@";
  for (std::size_t i = 0; i < options_.masters; ++i) {
    const std::uint16_t port = options_.proxied ? proxies_[i]->port() : nodes_[i]->port();
    url += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
  }
  if (tls) url += "?ca=" + options_.certificates->authority().string();
  return url;
}

std::uint16_t RedisCluster::SlotOfKeyLike(const std::string& pattern) {
  std::string key;
  const auto found = [&] {
    for (std::size_t i = 0; i < nodes_.size() && key.empty(); ++i) {
      const std::string keys = nodes_[i]->Command({"KEYS", pattern});
      key = keys.substr(0, keys.find('\n'));
    }
    return !key.empty();
  };
  Require(WaitUntil(found), "nobody has such a key");
  return static_cast<std::uint16_t>(std::stoi(nodes_[0]->Command({"CLUSTER", "KEYSLOT", key})));
}

std::string RedisCluster::IdOf(std::size_t index) {
  return nodes_[index]->Command({"CLUSTER", "MYID"});
}

std::size_t RedisCluster::MasterOf(std::uint16_t slot) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    std::string lines;
    try {
      lines = nodes_[i]->Command({"CLUSTER", "NODES"});
    } catch (const std::exception&) {
      continue;  // a node that was killed
    }
    // <id> <ip:port@cport> <flags> <master> <ping> <pong> <epoch> <link> <slot> <slot>…
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);) {
      std::istringstream fields(line);
      std::string field;
      for (int skip = 0; skip < 3; ++skip) fields >> field;
      if (field.find("myself") == std::string::npos) continue;
      for (int skip = 3; skip < 8; ++skip) fields >> field;
      while (fields >> field) {
        unsigned first = 0;
        unsigned last = 0;
        const int read = std::sscanf(field.c_str(), "%u-%u", &first, &last);
        if (read >= 1 && slot >= first && slot <= (read == 2 ? last : first)) return i;
      }
    }
  }
  throw std::runtime_error("redis cluster: nobody has the slot");
}

void RedisCluster::Failover(std::uint16_t slot) {
  const std::size_t master = MasterOf(slot);
  const std::string id = IdOf(master);
  std::size_t replica = nodes_.size();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (i != master &&
        nodes_[i]->Command({"CLUSTER", "NODES"}).find("myself,slave " + id) != std::string::npos) {
      replica = i;
    }
  }
  Require(replica < nodes_.size(), "the master has no replica");
  nodes_[replica]->Command({"CLUSTER", "FAILOVER"});
  Require(WaitUntil([&] { return MasterOf(slot) == replica; }), "no failover");
}

void RedisCluster::BeginMove(std::uint16_t slot, std::size_t to) {
  const std::string number = std::to_string(slot);
  const std::size_t from = MasterOf(slot);
  nodes_[to]->Command({"CLUSTER", "SETSLOT", number, "IMPORTING", IdOf(from)});
  nodes_[from]->Command({"CLUSTER", "SETSLOT", number, "MIGRATING", IdOf(to)});
}

void RedisCluster::EndMove(std::uint16_t slot, std::size_t to) {
  const std::string number = std::to_string(slot);
  const std::size_t from = MasterOf(slot);
  const std::string id = IdOf(to);
  nodes_[to]->Command({"CLUSTER", "SETSLOT", number, "NODE", id});
  nodes_[from]->Command({"CLUSTER", "SETSLOT", number, "NODE", id});
}

void RedisCluster::AwaitOk() {
  const auto ok = [this] {
    for (const auto& node : nodes_) {
      try {
        if (node->Command({"CLUSTER", "INFO"}).find("cluster_state:ok") == std::string::npos) {
          return false;
        }
      } catch (const std::exception&) {
        continue;
      }
    }
    return true;
  };
  Require(WaitUntil(ok), "it is not well");
}

}  // namespace weir::test
