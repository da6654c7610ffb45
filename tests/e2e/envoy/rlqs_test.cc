// Three real Envoys with the configuration that Weir ships, two Weir nodes on one Redis. Each is
// killed in turn, and each node paused and restarted, while every Envoy gets more requests than
// the limit. The requests that reached the upstream are
// replayed through the exact step: the bound of docs/design/rlqs.md holds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "algorithm/state.h"
#include "support/envoy_server.h"
#include "support/http_client.h"
#include "support/nginx_server.h"
#include "support/paths.h"
#include "support/ports.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"
#include "weir/quota.h"

namespace weir::test {
namespace {

constexpr std::int64_t kCapacity = 200;
constexpr std::int64_t kRate = 100;
constexpr std::int64_t kTtl = 3;
constexpr std::int64_t kLag = 2500;  // T of the bound, in ms
// How much the shares of three Envoys may have grown since the metric was read.
constexpr std::int64_t kGrowth = 3 * (kRate / 16 + 1);

constexpr std::string_view kPolicies = R"(
domain: edge
policies:
  - name: per-user
    match: { user: "*" }
    quota: { token_bucket: { capacity: 200, refill_per_second: 100 } }
)";

std::string Replaced(std::string text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

std::int64_t NowMillis() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// A client that keeps sending one Envoy more requests than the limit allows.
class Client {
 public:
  explicit Client(std::uint16_t port) : thread_([this, port] { Run(port); }) {}
  ~Client() {
    stop_ = true;
    thread_.join();
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  std::int64_t admitted() const { return admitted_; }
  std::int64_t refused() const { return refused_; }

 private:
  void Run(std::uint16_t port) {
    std::optional<HttpClient> client;
    while (!stop_) {
      try {
        if (!client) client.emplace(port);
        const int status = client->Get("/", {{"x-user", "anna"}}).status;
        ++(status == 200 ? admitted_ : refused_);
      } catch (const std::runtime_error&) {
        client.reset();  // the Envoy is being killed
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> admitted_{0};
  std::atomic<std::int64_t> refused_{0};
  std::thread thread_;
};

/// From `at` on, `more` requests beyond the bound may have passed.
struct Cut {
  std::int64_t at = 0;
  std::int64_t more = 0;
};

class RlqsEnvoyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    policies_.Write("policies.yaml", kPolicies);
    for (std::size_t i = 0; i < weirs_.size(); ++i) StartWeir(i);
    for (std::size_t i = 0; i < envoys_.size(); ++i) {
      envoy_ports_[i] = FreePort();
      StartEnvoy(i);
    }
  }

  void StartWeir(std::size_t i) {
    if (weir_ports_[i] == 0) weir_ports_[i] = FreePort();
    weirs_[i].emplace(std::vector<std::string>{
        "serve", "--http", "127.0.0.1:0", "--resp", "off", "--grpc",
        "127.0.0.1:" + std::to_string(weir_ports_[i]), "--store", redis_.url(), "--policies",
        (policies_ / "policies.yaml").string(), "--data", data_[i].path().string()});
    ASSERT_EQ(weirs_[i]->Port("grpc"), weir_ports_[i]);
  }

  void StartEnvoy(std::size_t i) {
    std::string config = ReadFile(SourcePath("deploy/envoy/rlqs.yaml"));
    config =
        Replaced(config, "port_value: 10000", "port_value: " + std::to_string(envoy_ports_[i]));
    config =
        Replaced(config, "port_value: 8000", "port_value: " + std::to_string(upstream_.port()));
    // Not every Envoy connects to the same node first.
    const std::size_t first = i % 2;
    config =
        Replaced(config, "port_value: 8081", "port_value: " + std::to_string(weir_ports_[first]));
    config = Replaced(config, "port_value: 8082",
                      "port_value: " + std::to_string(weir_ports_[1 - first]));
    envoys_[i].emplace(config, envoy_ports_[i]);
  }

  std::string ExplainAt(std::size_t weir) {
    return HttpClient(weirs_[weir]->Port("http")).Get("/admin/explain?domain=edge&user=anna").body;
  }

  double Metric(std::size_t weir, const std::string& name) {
    const std::string text = HttpClient(weirs_[weir]->Port("http")).Get("/metrics").body;
    const std::size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::atof(text.c_str() + at + name.size() + 2);
  }

  /// Waits until every client is admitted again, then lets the load run for `span`.
  void AllAdmit(std::chrono::milliseconds span) {
    std::array<std::int64_t, 3> before{};
    for (std::size_t i = 0; i < 3; ++i) before[i] = clients_[i]->admitted();
    EXPECT_TRUE(WaitUntil([&] {
      for (std::size_t i = 0; i < 3; ++i) {
        if (clients_[i]->admitted() <= before[i] + 2) return false;
      }
      return true;
    }));
    std::this_thread::sleep_for(span);
  }

  /// Cuts a node's Envoys off. They may continue with their assignments for a time to live, and
  /// the bucket counts as full again when another node makes the assignments.
  template <typename How>
  void CutOff(std::size_t i, const How& how) {
    const auto assigned = static_cast<std::int64_t>(Metric(i, "weir_rlqs_assigned_per_second"));
    how(weirs_[i]->process());
    cuts_.push_back({NowMillis(), (assigned + kGrowth) * (1 + kTtl)});
  }

  void Begin() {
    for (std::size_t i = 0; i < 3; ++i) clients_[i].emplace(envoy_ports_[i]);
    cuts_.push_back({NowMillis(), 0});
    AllAdmit(part_);
  }

  /// Ends the load, and compares the requests that reached the upstream with the bound: from each
  /// cut to the next, and in total.
  void Conclude() {
    std::int64_t answered = 0;
    for (auto& client : clients_) {
      answered += client->admitted();
      client.reset();
    }
    cuts_.push_back({NowMillis() + 60'000, 0});
    const std::vector<std::int64_t> admissions = Admissions();
    EXPECT_GE(static_cast<std::int64_t>(admissions.size()), answered) << "the log is not whole";
    std::int64_t more = 0;
    for (std::size_t i = 0; i + 1 < cuts_.size(); ++i) {
      more += cuts_[i].more;
      Explain(admissions, cuts_[i], cuts_[i + 1].at, "part " + std::to_string(i));
    }
    const std::int64_t begin = cuts_.front().at;
    Explain(admissions, {begin, more}, cuts_.back().at, "all");
    const auto seconds = static_cast<double>(admissions.back() - begin) / 1000;
    std::cout << "admitted " << admissions.size() << " in " << seconds << " s under a limit of "
              << kRate << " a second\n";
  }

  /// Everything that the upstream has answered, in milliseconds.
  std::vector<std::int64_t> Admissions() const {
    std::vector<std::int64_t> all;
    std::istringstream log(upstream_.AccessLog());
    for (std::string line; std::getline(log, line);) {
      all.push_back(std::llround(std::atof(line.c_str()) * 1000));
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  /// How many of the admissions from `from` to `to` the exact step would have denied with a
  /// capacity larger by `extra`.
  static std::int64_t Replay(const std::vector<std::int64_t>& admissions, std::int64_t from,
                             std::int64_t to, std::int64_t extra) {
    const Quota bound = *Quota::TokenBucket(kCapacity + extra, kRate);
    std::array<std::uint8_t, 64> bytes{};
    algorithm::State state;
    state.data = bytes.data();
    state.capacity = bytes.size();
    std::int64_t refused = 0;
    for (const std::int64_t at : admissions) {
      if (at < from || at >= to) continue;
      if (!algorithm::Acquire(bound, state, at * 1'000'000, 1).allowed()) ++refused;
    }
    return refused;
  }

  /// Expects the bound to hold, and prints how much of it was needed.
  static void Explain(const std::vector<std::int64_t>& admissions, const Cut& begin,
                      std::int64_t end, const std::string& what) {
    const std::int64_t allowed = kRate * kLag / 1000 + begin.more;
    std::int64_t needed = 0;
    while (needed < 10 * allowed && Replay(admissions, begin.at, end, needed) > 0) ++needed;
    EXPECT_LE(needed, allowed) << what;
    std::cout << what << ": " << needed << " beyond the limit; the bound allows " << allowed << ", "
              << begin.more << " of them for those that were cut off\n";
  }

  NginxServer upstream_{"location / { return 200 ok; }"};
  RedisServer redis_;
  TempDir policies_;
  std::array<TempDir, 2> data_;
  std::array<std::uint16_t, 2> weir_ports_{};
  std::array<std::optional<WeirProcess>, 2> weirs_;
  std::array<std::uint16_t, 3> envoy_ports_{};
  std::array<std::optional<EnvoyServer>, 3> envoys_;
  std::array<std::optional<Client>, 3> clients_;
  std::vector<Cut> cuts_;
  // WEIR_RLQS_SECONDS=60 and more is the long form: the duration of each part.
  const char* given_ = std::getenv("WEIR_RLQS_SECONDS");  // NOLINT(concurrency-mt-unsafe)
  const std::chrono::seconds part_{given_ != nullptr ? std::atoi(given_) : 4};
};

TEST_F(RlqsEnvoyTest, TheStatedBoundHoldsWhileEachIsKilledInTurn) {
  Begin();
  EXPECT_THAT(ExplainAt(0) + ExplainAt(1),
              ::testing::HasSubstr("\"assignments\":[{\"perSecond\":"));
  EXPECT_EQ(Metric(0, "weir_rlqs_streams") + Metric(1, "weir_rlqs_streams"), 3);
  for (std::size_t i = 0; i < 2; ++i) {
    CutOff(i, [](ChildProcess& process) { process.Kill(); });
    AllAdmit(part_);
    StartWeir(i);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    envoys_[i].reset();
    StartEnvoy(i);
    AllAdmit(std::chrono::seconds(1));
  }
  Conclude();
}

// Paused, a node keeps its connections but sends nothing; resumed, it continues where it was.
TEST_F(RlqsEnvoyTest, TheStatedBoundHoldsWhileEachNodeHangs) {
  Begin();
  for (std::size_t i = 0; i < 2; ++i) {
    CutOff(i, [](ChildProcess& process) { process.Signal(SIGSTOP); });
    AllAdmit(part_);
    weirs_[i]->process().Signal(SIGCONT);
    AllAdmit(part_);
  }
  Conclude();
}

// A rolling restart: what the Envoys of the stopped node may still admit is charged, so it adds
// only the 4 f of the moment.
TEST_F(RlqsEnvoyTest, TheStatedBoundHoldsWhileEachNodeIsRestarted) {
  Begin();
  for (std::size_t i = 0; i < 2; ++i) {
    CutOff(i, [](ChildProcess& process) { process.Signal(SIGTERM); });
    EXPECT_EQ(weirs_[i]->process().Wait(), 0);
    StartWeir(i);
    AllAdmit(part_);
  }
  Conclude();
}

}  // namespace
}  // namespace weir::test
