// A home store, two regions whose stores lease from it, and two nodes in each that lease from
// those: one region's store is killed and restarted, the other is suspended for a while. What all
// nodes admitted together is what the original quota allows.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fault/stores/lease_history.h"
#include "support/check_load.h"
#include "support/http_client.h"
#include "support/ports.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kPolicies = R"(
policies:
  - { name: bucket, match: { bucket: "*" }, mode: leased, on_store_error: deny,
      quota: { token_bucket: { capacity: 400, refill_per_second: 80 } } }
  - { name: window, match: { window: "*" }, mode: leased, on_store_error: deny,
      quota: { fixed_window: { limit: 400, window: 4s } } }
  - { name: log, match: { log: "*" }, mode: leased, on_store_error: deny,
      quota: { sliding_log: { limit: 400, window: 4s } } }
  - { name: exact, match: { exact: "*" }, on_store_error: deny,
      quota: { fixed_window: { limit: 100, window: 1s } } }
)";

struct Hot {
  std::string entry;
  Quota quota;
  Quota smaller;  // under which the history must not be explained: the load pressed the limit
};
std::vector<Hot> HotKeys() {
  return {{"bucket", *Quota::TokenBucket(400, 80), *Quota::TokenBucket(200, 40)},
          {"window", *Quota::FixedWindow(400, 4s), *Quota::FixedWindow(200, 4s)},
          {"log", *Quota::SlidingLog(400, 4s), *Quota::SlidingLog(200, 4s)},
          {"exact", *Quota::FixedWindow(100, 1s), *Quota::FixedWindow(50, 1s)}};
}

/// A `weir serve` that can be killed and restarted on the same ports.
class Server {
 public:
  Server(const std::string& store, const std::string& policies, const std::string& data,
         bool region)
      : http_(FreePort()), resp_(FreePort()) {
    const std::string host = "127.0.0.1:";
    arguments_ = {"serve",
                  "--http",
                  host + std::to_string(http_),
                  "--grpc",
                  "off",
                  "--resp",
                  region ? host + std::to_string(resp_) : "off",
                  "--store",
                  store,
                  "--policies",
                  policies,
                  "--data",
                  data,
                  "--threads",
                  "1",
                  "--store-timeout",
                  region ? "200ms" : "400ms",
                  "--region-term",
                  "2s",
                  "--region-lends",
                  region ? "true" : "false"};
    Start();
  }
  void Start() {
    process_ = std::make_unique<WeirProcess>(arguments_);
    static_cast<void>(process_->Port("http"));
  }
  std::uint16_t http() const { return http_; }
  std::string url() const { return "weir://127.0.0.1:" + std::to_string(resp_); }
  ChildProcess& process() { return process_->process(); }
  std::int64_t Metric(const std::string& metric) const {
    const std::string text = HttpClient(http_).Get("/metrics").body;
    const std::string name = "\n" + metric + " ";
    const std::size_t at = text.find(name);
    return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + name.size());
  }

 private:
  const std::uint16_t http_;
  const std::uint16_t resp_;
  std::vector<std::string> arguments_;
  std::unique_ptr<WeirProcess> process_;
};

using Histories = std::map<std::string, std::vector<CheckRecord>>;  // of what was admitted

/// A client of one node that checks the hot keys in turn.
class Client {
 public:
  explicit Client(std::uint16_t port) : port_(port), thread_([this] { Run(); }) {}
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
    static const std::string kTurn[] = {"bucket", "window", "log", "bucket", "exact"};
    for (std::size_t next = 0; !stopping_; ++next) {
      const std::string& entry = kTurn[next % std::size(kTurn)];
      CheckRecord record;
      record.sent = WallNanos();
      const HttpResponse response =
          http.Post("/v1/check", R"({"descriptors":[{")" + entry + R"(":"hot"}]})");
      record.allowed = response.body.find("\"allowed\":true") != std::string::npos;
      record.answered = WallNanos();
      if (record.allowed) admitted_[entry].push_back(record);
    }
  }

  const std::uint16_t port_;
  std::atomic<bool> stopping_{false};
  Histories admitted_;
  std::thread thread_;
};

TEST(Regions, NothingIsAdmittedThatTheQuotaAsWrittenRefuses) {
  RedisServer home;
  TempDir dir;
  const std::string policies = dir.Write("policies.yaml", kPolicies).string();
  auto data = [&dir, number = 0]() mutable {
    return (dir / ("data" + std::to_string(++number))).string();
  };
  std::vector<std::unique_ptr<Server>> regions;
  std::vector<std::unique_ptr<Server>> nodes;
  for (int i = 0; i < 2; ++i) {
    regions.push_back(std::make_unique<Server>(home.url(), policies, data(), true));
    for (int k = 0; k < 2; ++k) {
      nodes.push_back(std::make_unique<Server>(regions.back()->url(), policies, data(), false));
    }
  }
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < 2 * nodes.size(); ++i) {
    clients.push_back(std::make_unique<Client>(nodes[i % nodes.size()]->http()));
  }
  std::this_thread::sleep_for(2500ms);
  EXPECT_GT(regions[0]->Metric("weir_lease_permits_lent_total"), 0) << "nothing was lent";
  regions[0]->process().Kill();
  regions[1]->process().Signal(SIGSTOP);
  std::this_thread::sleep_for(1200ms);
  regions[1]->process().Signal(SIGCONT);
  regions[0]->Start();
  std::this_thread::sleep_for(4000ms);
  Histories all;
  for (auto& client : clients) {
    client->Stop();
    for (const auto& [key, records] : client->admitted()) {
      all[key].insert(all[key].end(), records.begin(), records.end());
    }
  }
  for (const auto& region : regions) {
    EXPECT_GT(region->Metric("weir_lease_permits_lent_total"), 0) << "nothing was lent";
  }
  for (const Hot& hot : HotKeys()) {
    EXPECT_EQ(Unexplained(hot.quota, all[hot.entry]), std::nullopt) << hot.entry;
    EXPECT_NE(Unexplained(hot.smaller, all[hot.entry]), std::nullopt) << hot.entry;
  }
}

}  // namespace
}  // namespace weir::test
