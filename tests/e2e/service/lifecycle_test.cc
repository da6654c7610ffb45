// Start, reload, drain, restart and crash.

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <thread>

#include "e2e/service/fixture.h"
#include "support/paths.h"
#include "support/ports.h"
#include "support/stopwatch.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Lifecycle : public ServiceTest {};

constexpr const char* kLimit =
    "policies: [{name: p, key: k, quota: {fixed_window: {limit: LIMIT, window: 100d}}}]";

std::string WithLimit(int limit) {
  std::string text = kLimit;
  return text.replace(text.find("LIMIT"), 5, std::to_string(limit));
}

TEST_F(Lifecycle, IsReadyWhenItSaysSo) {
  Serve();
  HttpClient client = Client();
  EXPECT_EQ(client.Get("/healthz").status, 200);
  EXPECT_EQ(client.Get("/readyz").status, 200);
  EXPECT_EQ(weir_->process().Terminate(), 0);
}

TEST_F(Lifecycle, MetricsAreWhatPrometheusReads) {
  Serve();
  Check(R"({"key":"a"})");
  Check(R"({"key":"a","cost":1000})");
  const std::string text = Client().Get("/metrics").body;
  for (const char* line :
       {"weir_allowed_total 1\n", "weir_blocked_total 1\n", "weir_build_info{",
        "weir_latency_seconds_count{door=\"http\"} 2\n",
        "weir_latency_seconds_count{door=\"grpc\"} 0\n", "weir_requests_total{door=\"http\"} 2\n",
        "weir_requests_total{door=\"resp\"} 0\n",
        "weir_policy_allowed_total{domain=\"default\",policy=\"default\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  const auto file = dir_.Write("metrics.txt", text);
  const RunResult checked = RunProgram({"sh", "-c", "promtool check metrics < " + file.string()});
  EXPECT_EQ(checked.exit_code, 0) << checked.output << checked.error_output;
}

TEST_F(Lifecycle, ChangedFilesAreInForceAndBadOnesChangeNothing) {
  const auto file = ServePolicies(WithLimit(10));
  const auto limit = [this] { return Check(R"({"key":"k"})", "/v1/peek").body; };
  EXPECT_THAT(limit(), HasSubstr("\"limit\":10,"));
  dir_.Write("policies.yaml", WithLimit(20));
  EXPECT_TRUE(WaitUntil([&] { return limit().find("\"limit\":20,") != std::string::npos; }));
  dir_.Write("policies.yaml",
             "policies: [{name: p, quota: {fixed_window: {limit: -1, window: 1h}}}]");
  weir_->process().Signal(SIGHUP);
  EXPECT_TRUE(weir_->process().WaitForError("policies not reloaded"));
  EXPECT_THAT(limit(), HasSubstr("\"limit\":20,"));
  EXPECT_THAT(Client().Get("/metrics").body, HasSubstr("weir_policy_reload_success 0\n"));
  dir_.Write("policies.yaml", WithLimit(30));
  weir_->process().Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return limit().find("\"limit\":30,") != std::string::npos; }));
}

TEST_F(Lifecycle, AReloadNamesTheSettingsThatNeedARestart) {
  const auto config = dir_.Write("weir.yaml", "admin: {keys: [an-old-key-0123456789]}\n");
  Serve({"--config", config.string()});
  dir_.Write("weir.yaml",
             "admin: {keys: [an-old-key-0123456789, a-new-key-0123456789]}\nmax_keys: 1000\n");
  weir_->process().Signal(SIGHUP);
  EXPECT_TRUE(weir_->process().WaitForError(
      "the configuration file has changed; restart to apply these settings"));
  EXPECT_TRUE(weir_->process().WaitForError("admin.keys, max_keys"));
  EXPECT_THAT(weir_->process().error_output(), Not(HasSubstr("a-new-key")));
}

TEST_F(Lifecycle, AReloadSaysThatARestartWouldFail) {
  const auto config = dir_.Write("weir.yaml", "max_keys: 1000\n");
  Serve({"--config", config.string()});
  dir_.Write("weir.yaml", "max_keyz: 5\nmax_keys: lots\n");
  weir_->process().Signal(SIGHUP);
  const auto said = [this](std::string_view text) {
    return weir_->process().WaitForError(text).value_or("");
  };
  EXPECT_THAT(said("weir.yaml:1:1: unknown setting 'max_keyz'"),
              AllOf(HasSubstr(" error "), HasSubstr("a restart would fail")));
  EXPECT_THAT(said("weir.yaml:2:11: max_keys: expected"), HasSubstr("a restart would fail"));
  EXPECT_THAT(weir_->process().error_output(), Not(HasSubstr("restart to apply")));
}

TEST_F(Lifecycle, EndsThoughNobodyReadsWhatItPrints) {
  const std::string pipe = (dir_.path() / "out").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // never reads
  ASSERT_GE(reader, 0);
  const std::string port = std::to_string(FreePort());
  ChildProcess weir(
      {"sh", "-c",
       "exec \"$1\" serve --http 127.0.0.1:$2 --grpc off --resp off --data \"$0.data\" "
       ">\"$0\"",
       pipe, Program(), port});
  ASSERT_TRUE(weir.WaitForError("ready")) << weir.error_output();
  HttpClient client(static_cast<std::uint16_t>(std::stoi(port)));
  client.Post("/api/config", R"({"userId":"u","rateLimit":1000,"timeWindow":60})");
  const std::string body = R"({"userId":"u","message":")" + std::string(2000, 'm') + "\"}";
  for (int i = 0; i < 100; ++i) EXPECT_EQ(client.Post("/api/send", body).status, 200);
  // Messages delivered to the console fill the pipe, which holds at least 16 of them.
  const auto waiting = [reader] {
    int bytes = 0;
    return ioctl(reader, FIONREAD, &bytes) == 0 ? bytes : -1;
  };
  EXPECT_TRUE(WaitUntil([&] { return waiting() > 30'000; })) << waiting();
  EXPECT_EQ(weir.Terminate(), 0);
  close(reader);
}

TEST_F(Lifecycle, NothingAcceptedIsDroppedByADrain) {
  Serve();
  std::atomic<bool> stop{false};
  std::atomic<int> answered{0};
  std::atomic<int> dropped{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        // A refused connection was never accepted; anything after that must be answered.
        std::optional<HttpClient> client;
        try {
          client.emplace(port_);
          client->connection();
        } catch (const std::runtime_error&) {
          return;
        }
        bool close = false;
        while (!stop && !close) {
          try {
            const HttpResponse response = client->Post("/v1/check", R"({"key":"k"})");
            if (response.status == 200) ++answered;
            close = response.Header("Connection") == "close";
          } catch (const std::runtime_error&) {
            ++dropped;
            return;
          }
        }
      }
    });
  }
  EXPECT_TRUE(WaitUntil([&] { return answered > 200; }));
  weir_->process().Signal(SIGTERM);
  EXPECT_EQ(weir_->process().Wait(), 0);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(dropped.load(), 0);
}

TEST_F(Lifecycle, AnIdleConnectionDoesNotHoldUpTheDrain) {
  Serve();
  HttpClient idle = Client();
  EXPECT_EQ(idle.Get("/healthz").status, 200);
  const Stopwatch watch;
  EXPECT_EQ(weir_->process().Terminate(), 0);
  EXPECT_LT(watch.elapsed(), std::chrono::seconds(5));
}

TEST_F(Lifecycle, EndsThoughLargeBatchesWaitToBeRead) {
  Serve({"--config", dir_.Write("weir.yaml", "limits: {drain_timeout: 100ms}\n").string()});
  std::string body = R"({"events":[{})";
  while (body.size() < 7'000'000) body += ",{}";
  body += "]}";
  std::deque<TcpConnection> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(weir_->Port("http"))
        .Send("POST /api/v1/slots/batch HTTP/1.1\r\nHost: x\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  EXPECT_EQ(weir_->process().Terminate(), 0);
}

TEST_F(Lifecycle, ARestartForgetsNothing) {
  const auto file = dir_.Write("policies.yaml", WithLimit(10));
  Serve({"--policies", file.string()});
  EXPECT_EQ(Client().Post("/admin/policies", R"({"key":"mine","type":"TOKEN_BUCKET"})").status,
            201);
  Check(R"({"key":"k","cost":7})");
  EXPECT_EQ(weir_->process().Terminate(), 0);
  Serve({"--policies", file.string()});
  EXPECT_THAT(Check(R"({"key":"k"})").body, HasSubstr("\"remaining\":2,"));
  EXPECT_EQ(Client().Get("/admin/policies/mine").status, 200);
}

TEST_F(Lifecycle, ACrashKeepsAnsweredPoliciesAndStateToTheLastSnapshot) {
  const auto file = dir_.Write("policies.yaml", WithLimit(10));
  const auto config = dir_.Write("weir.yaml", "snapshot: { interval: 100ms }\n");
  const std::vector<std::string> arguments = {"--policies", file.string(), "--config",
                                              config.string()};
  Serve(arguments);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(Client()
                  .Post("/admin/policies",
                        R"({"key":"p)" + std::to_string(i) + R"(","type":"TOKEN_BUCKET"})")
                  .status,
              201);
  }
  Check(R"({"key":"k","cost":7})");
  // After two more snapshots the charge is certainly in the file.
  const auto snapshot = dir_ / "data" / "limits.snapshot";
  for (int i = 0; i < 2; ++i) {
    const auto before = std::filesystem::exists(snapshot)
                            ? std::filesystem::last_write_time(snapshot)
                            : std::filesystem::file_time_type::min();
    ASSERT_TRUE(WaitUntil([&] {
      return std::filesystem::exists(snapshot) &&
             std::filesystem::last_write_time(snapshot) != before;
    }));
  }
  weir_->process().Kill();
  Serve(arguments);
  EXPECT_EQ(Client().Get("/admin/policies?source=admin").Header("X-Total-Count"), "20");
  EXPECT_THAT(Check(R"({"key":"k"})").body, HasSubstr("\"remaining\":2,"));
}

// Each would grant the whole limit, and overwrite the other's counts with its own.
TEST_F(Lifecycle, TwoDoNotShareAFolder) {
  Serve();
  const std::string folder = (dir_ / "data").string();
  WeirProcess second({"serve", "--http", "127.0.0.1:0", "--data", folder});
  EXPECT_EQ(second.process().Wait(), 1);
  EXPECT_THAT(second.process().error_output(), HasSubstr(folder + " is in use by process " +
                                                         std::to_string(weir_->process().pid())));
  EXPECT_EQ(Client().Get("/readyz").status, 200);
}

TEST_F(Lifecycle, HelpNeedsNoOtherPage) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"}, {"serve", "--help"}, {"version"}}) {
    WeirProcess weir(words);
    EXPECT_EQ(weir.process().Wait(), 0);
    EXPECT_THAT(weir.process().output(), HasSubstr("weir"));
  }
}

}  // namespace
}  // namespace weir::test
