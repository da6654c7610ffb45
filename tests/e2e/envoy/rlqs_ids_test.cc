// A client that chooses the ids of buckets behind a real Envoy with the configuration that Weir
// ships: it must not cost others their assignments.

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "support/envoy_server.h"
#include "support/http_client.h"
#include "support/nginx_server.h"
#include "support/paths.h"
#include "support/ports.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

/// The configuration that Weir ships, with other ports, and timeouts for a busy machine.
std::string Config(std::uint16_t port, std::uint16_t upstream, std::uint16_t grpc) {
  std::string config = ReadFile(SourcePath("deploy/envoy/rlqs.yaml"));
  const auto set_port = [&config](const std::string& from, std::uint16_t to) {
    config = Replaced(config, "port_value: " + from, "port_value: " + std::to_string(to));
  };
  set_port("10000", port);
  set_port("8000", upstream);
  set_port("8081", grpc);
  set_port("8082", grpc);
  config = Replaced(config, "connect_timeout: 1s", "connect_timeout: 20s");
  config = Replaced(config, "- timeout: 1s", "- timeout: 20s");  // of the health check
  return Replaced(config, "interval: 1s, timeout: 2s", "interval: 1s, timeout: 20s");
}

TEST(RlqsIds, LongOnesDoNotEndTheAssignmentsOfOthers) {
  const TempDir folder;
  const std::string policies =
      folder
          .Write("policies.yaml",
                 "domain: edge\n"
                 "policies:\n"
                 "  - name: per-user\n"
                 "    match: { user: \"*\" }\n"
                 "    quota: { token_bucket: { capacity: 200, refill_per_second: 100 } }\n")
          .string();
  const std::uint16_t grpc = FreePort();
  WeirProcess weir({"serve", "--http", "127.0.0.1:0", "--resp", "off", "--grpc",
                    "127.0.0.1:" + std::to_string(grpc), "--policies", policies, "--data",
                    folder.path().string()});
  ASSERT_EQ(weir.Port("grpc"), grpc);
  NginxServer upstream("location / { return 200 ok; }");
  const std::uint16_t port = FreePort();
  EnvoyServer envoy(Config(port, upstream.port(), grpc), port);

  HttpClient client(port);
  const auto status = [&](const std::string& user) {
    return client.Get("/", {{"x-user", user}}).status;
  };
  ASSERT_TRUE(WaitUntil([&] { return status("anna") == 200; }));
  // Together more than a message of Envoy's, which reports all buckets that it knows, may contain.
  for (char c = 'a'; c <= 'o'; ++c) (void)status(std::string(50'000, c));
  EXPECT_TRUE(WaitUntil([&] {
    const std::string name = "\nweir_rlqs_turned_away_total ";
    const std::string metrics = HttpClient(weir.Port("http")).Get("/metrics").body;
    const std::size_t at = metrics.find(name);
    return at != std::string::npos && metrics[at + name.size()] != '0';
  })) << "no long id came to Weir";
  // Envoy reports every five seconds, and an assignment lasts for three: without a stream, all
  // answers in the last six seconds are denials.
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto begun = now();
  int asked = 0;
  int admitted = 0;
  while (now() < begun + std::chrono::seconds(14)) {
    const bool passed = status("anna") == 200;
    if (now() > begun + std::chrono::seconds(6)) {
      ++asked;
      admitted += passed ? 1 : 0;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_GT(2 * admitted, asked) << "the assignment was not renewed";
  EXPECT_TRUE(WaitUntil([&] { return status("ben") == 200; }));
}

}  // namespace
}  // namespace weir::test
