// Processes on one store that keep permits of a concurrency limit in stock, while one of them is
// killed and one suspended: clients never have more permits in flight than the limit, wherever
// they release them.
//
// The short form runs on Redis and PostgreSQL. WEIR_LONG_LEASES=1: on all stores.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fault/stores/lease_node.h"
#include "support/and_mysql.h"
#include "support/check_load.h"
#include "support/http_client.h"
#include "support/store_server.h"
#include "support/temp_dir.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kNodes = 4;
constexpr std::size_t kClients = 8;
constexpr std::int64_t kLimit = 128;
constexpr std::int64_t kLease = 4'000'000'000;

constexpr std::string_view kPolicies = R"(
policies:
  - { name: jobs, match: { queue: "*" }, mode: leased, on_store_error: deny,
      quota: { concurrency: { limit: 128, lease: 4s } } }
)";
constexpr std::string_view kDescriptors = R"("descriptors":[{"queue":"hot"}])";

/// When a client certainly held a permit: from the answer until it began to release it, and at most
/// one lease from when it sent the request.
struct Held {
  std::int64_t from = 0;
  std::int64_t until = 0;
};

std::int64_t MostAtOnce(const std::vector<Held>& all) {
  std::vector<std::pair<std::int64_t, int>> changes;
  for (const Held& held : all) {
    if (held.until <= held.from) continue;
    changes.emplace_back(held.from, 1);
    changes.emplace_back(held.until, -1);
  }
  std::ranges::sort(changes);
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, now += change);
  return most;
}

/// Holds up to `kMost` permits and releases the oldest at any node; forgets one now and then,
/// and releases others twice.
class Client {
 public:
  Client(const std::vector<std::uint16_t>& ports, std::size_t number) : turn_(number) {
    for (const std::uint16_t port : ports) nodes_.push_back(std::make_unique<HttpClient>(port));
    thread_ = std::thread([this] { Run(); });
  }
  ~Client() { Stop(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  const std::vector<Held>& held() const { return held_; }  // after Stop

 private:
  static constexpr std::size_t kMost = 18;

  struct Permit {
    std::string name;
    std::size_t held = 0;  // index
  };

  void Run() {
    while (!stopping_) {
      ++turn_;
      // Mostly the same node, like a client that keeps a connection: that node leases.
      if (permits_.size() < kMost && turn_ % 3 != 0) {
        Acquire(*nodes_[first_ % nodes_.size()]);
      } else if (!permits_.empty()) {
        ReleaseOldest();
      }
    }
  }

  void Acquire(HttpClient& node) {
    const std::int64_t sent = WallNanos();
    const std::string answer = Post(node, "/v1/check", "{" + std::string(kDescriptors) + "}");
    if (answer.find("\"allowed\":true") == std::string::npos) return ReleaseOldest();
    const std::string field = R"("leases":")";
    const std::size_t at = answer.find(field) + field.size();
    permits_.push_back({answer.substr(at, answer.find('"', at) - at), held_.size()});
    held_.push_back({WallNanos(), sent + kLease});
  }

  void ReleaseOldest() {
    if (permits_.empty()) return;
    const Permit permit = std::move(permits_.front());
    permits_.pop_front();
    if (turn_ % 97 == 0) return;  // never released
    held_[permit.held].until = std::min(held_[permit.held].until, WallNanos());
    const std::string body =
        "{" + std::string(kDescriptors) + R"(,"leases":")" + permit.name + R"("})";
    for (std::size_t i = 0; i < (turn_ % 11 == 0 ? 2 : 1); ++i) {
      Post(*nodes_[(turn_ + i) % nodes_.size()], "/v1/release", body);
    }
  }

  static std::string Post(HttpClient& node, const std::string& path, const std::string& body) {
    try {
      return node.Post(path, body).body;
    } catch (const std::exception&) {
      node.Disconnect();
      std::this_thread::sleep_for(5ms);  // killed: it will be restarted
      return {};
    }
  }

  std::vector<std::unique_ptr<HttpClient>> nodes_;
  std::size_t turn_;
  const std::size_t first_ = turn_;
  std::deque<Permit> permits_;
  std::vector<Held> held_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

std::int64_t Metric(LeaseNode& node, const std::string& metric) {
  const std::string text = HttpClient(node.port()).Get("/metrics").body;
  const std::string name = "\n" + metric + " ";
  const std::size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + name.size());
}

class PermitsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PermitsTest, ClientsNeverHaveMoreThanTheLimit) {
  const auto store = StoreServer::Make(GetParam());
  TempDir dir;
  const std::string policies = dir.Write("policies.yaml", kPolicies).string();
  std::vector<std::unique_ptr<LeaseNode>> nodes;
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < kNodes; ++i) {
    nodes.push_back(std::make_unique<LeaseNode>(store->url(), policies,
                                                (dir / ("data" + std::to_string(i))).string()));
    ports.push_back(nodes.back()->port());
  }
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < kClients; ++i) clients.push_back(std::make_unique<Client>(ports, i));
  std::this_thread::sleep_for(1000ms);
  nodes[1]->process().Kill();
  nodes[2]->process().Signal(SIGSTOP);
  std::this_thread::sleep_for(600ms);
  nodes[2]->process().Signal(SIGCONT);
  nodes[1]->Start();
  std::this_thread::sleep_for(1500ms);
  std::vector<Held> all;
  for (auto& client : clients) {
    client->Stop();
    all.insert(all.end(), client->held().begin(), client->held().end());
  }
  EXPECT_GT(Metric(*nodes[0], "weir_lease_permits_spent_total"), 0) << "nothing was leased";
  EXPECT_LE(MostAtOnce(all), kLimit);
  EXPECT_GT(MostAtOnce(all), kLimit / 2) << "the load did not come near the limit";
}

std::vector<std::string> Kinds() {
  std::vector<std::string> kinds = {"redis", "postgres"};
  if (std::getenv("WEIR_LONG_LEASES") == nullptr) return kinds;
  kinds.insert(kinds.end(), {"redis_cluster", "mariadb"});
  return AndMysql(kinds);
}

INSTANTIATE_TEST_SUITE_P(Stores, PermitsTest, ::testing::ValuesIn(Kinds()),
                         [](const auto& store) { return store.param; });

}  // namespace
}  // namespace weir::test
