// Eight processes on one store that lease permits, while some of them are killed, stopped and cut
// off from the store: what they admitted together, in the store's time, is what the original quota
// allows. Exact policies alongside are unaffected.
//
// The short form runs on Redis and PostgreSQL. WEIR_LONG_LEASES=1: on all stores, with faults of
// five seconds and 10,000 other keys.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fault/stores/lease_history.h"
#include "fault/stores/lease_node.h"
#include "support/and_mysql.h"
#include "support/check_load.h"
#include "support/cutting_proxy.h"
#include "support/http_client.h"
#include "support/ports.h"
#include "support/store_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;

bool Long() { return std::getenv("WEIR_LONG_LEASES") != nullptr; }
std::chrono::milliseconds FaultLasts() { return Long() ? 5000ms : 1200ms; }
std::size_t OtherKeys() { return Long() ? 10'000 : 500; }

constexpr std::string_view kPolicies = R"(
policies:
  - { name: bucket, match: { bucket: "*" }, mode: leased, on_store_error: deny,
      quota: { token_bucket: { capacity: 400, refill_per_second: 80 } } }
  - { name: window, match: { window: "*" }, mode: leased, on_store_error: deny,
      quota: { fixed_window: { limit: 200, window: 2s } } }
  - { name: log, match: { log: "*" }, mode: leased, on_store_error: deny,
      quota: { sliding_log: { limit: 200, window: 2s } } }
  - { name: counter, match: { counter: "*" }, mode: leased, on_store_error: deny,
      quota: { sliding_counter: { limit: 200, window: 2s, buckets: 4 } } }
  - { name: rate, match: { rate: "*" }, mode: rate_leased, on_store_error: deny,
      quota: { token_bucket: { capacity: 100, refill_per_second: 80 } } }
  - { name: exact, match: { exact: "*" }, on_store_error: deny,
      quota: { fixed_window: { limit: 100, window: 1s } } }
  - { name: other, match: { other: "*" }, mode: leased, on_store_error: deny,
      quota: { token_bucket: { capacity: 20, refill_per_second: 4 } } }
)";

struct Hot {
  std::string entry;
  Quota quota;
  Quota smaller;  // under which the history must not be explained: the load pressed the limit
};
std::vector<Hot> HotKeys() {
  return {{"bucket", *Quota::TokenBucket(400, 80), *Quota::TokenBucket(200, 40)},
          {"window", *Quota::FixedWindow(200, 2s), *Quota::FixedWindow(100, 2s)},
          {"log", *Quota::SlidingLog(200, 2s), *Quota::SlidingLog(100, 2s)},
          {"counter", *Quota::SlidingCounter(200, 2s, 4), *Quota::SlidingCounter(100, 2s, 4)},
          {"rate", *Quota::TokenBucket(100, 80), *Quota::TokenBucket(50, 40)},
          {"exact", *Quota::FixedWindow(100, 1s), *Quota::FixedWindow(50, 1s)}};
}

using Histories = std::map<std::string, std::vector<CheckRecord>>;  // of what was admitted

/// A client of one node that checks the hot keys in turn, and one of the others now and then.
class Client {
 public:
  Client(std::uint16_t port, std::size_t seed) : port_(port), next_(seed * 7919) {
    thread_ = std::thread([this] { Run(); });
  }
  ~Client() { Stop(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  const Histories& admitted() const { return admitted_; }  // after Stop

 private:
  void Run() {
    HttpClient http(port_);
    static const std::string kTurn[] = {"bucket",  "window", "rate",   "bucket", "log",
                                        "counter", "rate",   "bucket", "exact",  "other"};
    while (!stopping_) {
      const std::string& entry = kTurn[++next_ % std::size(kTurn)];
      const std::string value =
          entry == "other" ? std::to_string(next_ / std::size(kTurn) % OtherKeys()) : "hot";
      Ask(http, entry, value);
    }
  }
  void Ask(HttpClient& http, const std::string& entry, const std::string& value) {
    CheckRecord record;
    record.sent = WallNanos();
    try {
      const HttpResponse response =
          http.Post("/v1/check", R"({"descriptors":[{")" + entry + R"(":")" + value + R"("}]})");
      record.allowed = response.body.find("\"allowed\":true") != std::string::npos;
    } catch (const std::exception&) {
      http.Disconnect();
      std::this_thread::sleep_for(5ms);  // killed: it will be restarted
    }
    record.answered = WallNanos();
    if (record.allowed) admitted_[entry + value].push_back(record);
  }

  const std::uint16_t port_;
  std::size_t next_;
  std::atomic<bool> stopping_{false};
  Histories admitted_;
  std::thread thread_;
};

class LeasesTest : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr std::size_t kNodes = 8;

  /// The store through `proxy`: the URL's port is the last number after a colon.
  static std::string Through(std::string url, std::uint16_t proxy) {
    const std::size_t at = url.find("127.0.0.1:") + 10;
    const std::size_t end = url.find_first_not_of("0123456789", at);
    return url.replace(at, (end == std::string::npos ? url.size() : end) - at,
                       std::to_string(proxy));
  }
  static std::uint16_t PortOf(const std::string& url) {
    return static_cast<std::uint16_t>(std::stoi(url.substr(url.find("127.0.0.1:") + 10)));
  }

  /// One node is killed and restarted, one suspended, and one cut off from the store; in a
  /// cluster all of them are.
  void Break(std::vector<std::unique_ptr<LeaseNode>>& nodes, StoreServer& store,
             CuttingProxy* proxy) {
    nodes[1]->process().Kill();
    nodes[2]->process().Signal(SIGSTOP);
    if (proxy != nullptr) proxy->Hold(true);
    if (proxy == nullptr) store.Pause();
    std::this_thread::sleep_for(FaultLasts());
    if (proxy != nullptr) proxy->Hold(false);
    if (proxy == nullptr) store.Resume();
    nodes[2]->process().Signal(SIGCONT);
    nodes[1]->Start();
  }

  static std::int64_t Metric(LeaseNode& node, const std::string& metric) {
    const std::string text = HttpClient(node.port()).Get("/metrics").body;
    const std::string name = "\n" + metric + " ";
    const std::size_t at = text.find(name);
    return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + name.size());
  }
};

TEST_P(LeasesTest, NothingIsAdmittedThatTheQuotaAsWrittenRefuses) {
  const std::string kind = GetParam();
  const bool cluster = kind == "redis_cluster";
  const auto store = StoreServer::Make(kind);
  TempDir dir;
  const std::string policies = dir.Write("policies.yaml", kPolicies).string();
  std::unique_ptr<CuttingProxy> proxy;
  if (!cluster) proxy = std::make_unique<CuttingProxy>(PortOf(store->url()));
  std::vector<std::unique_ptr<LeaseNode>> nodes;
  for (std::size_t i = 0; i < kNodes; ++i) {
    const bool cut = i == 3 && proxy != nullptr;
    nodes.push_back(
        std::make_unique<LeaseNode>(cut ? Through(store->url(), proxy->port()) : store->url(),
                                    policies, (dir / ("data" + std::to_string(i))).string()));
  }
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < 2 * kNodes; ++i) {
    clients.push_back(std::make_unique<Client>(nodes[i % kNodes]->port(), i));
  }
  std::this_thread::sleep_for(1500ms);
  Break(nodes, *store, proxy.get());
  std::this_thread::sleep_for(Long() ? 10'000ms : 2500ms);
  Histories all;
  for (auto& client : clients) {
    client->Stop();
    for (const auto& [key, records] : client->admitted()) {
      all[key].insert(all[key].end(), records.begin(), records.end());
    }
  }
  EXPECT_GT(Metric(*nodes[0], "weir_lease_local_checks_total"), 0) << "nothing was leased";
  EXPECT_GT(Metric(*nodes[0], "weir_lease_share_permits_total"), 0) << "no rate was leased";
  const std::string status = HttpClient(nodes[0]->port()).Get("/admin/status").body;
  EXPECT_NE(status.find(R"("leases":{"keys":)"), std::string::npos) << status;
  std::printf("%s: admitted", kind.c_str());
  for (const Hot& hot : HotKeys()) {
    const std::vector<CheckRecord>& history = all[hot.entry + "hot"];
    std::printf(" %s %zu,", hot.entry.c_str(), history.size());
    EXPECT_EQ(Unexplained(hot.quota, history), std::nullopt) << hot.entry;
    EXPECT_NE(Unexplained(hot.smaller, history), std::nullopt) << hot.entry;
    all.erase(hot.entry + "hot");
  }
  const Quota other = *Quota::TokenBucket(20, 4);
  std::size_t others = 0;
  for (const auto& [key, history] : all) {
    others += history.size();
    EXPECT_EQ(Unexplained(other, history), std::nullopt) << key;
  }
  std::printf(" other %zu of %zu keys\n", others, all.size());
}

std::vector<std::string> Kinds() {
  std::vector<std::string> kinds = {"redis", "postgres"};
  if (!Long()) return kinds;
  kinds.insert(kinds.end(), {"redis_cluster", "mariadb"});
  return AndMysql(kinds);
}

INSTANTIATE_TEST_SUITE_P(Stores, LeasesTest, ::testing::ValuesIn(Kinds()),
                         [](const auto& store) { return store.param; });

}  // namespace
}  // namespace weir::test
