// A client that chooses the ids of buckets behind a real Envoy with the configuration that Weir
// ships: it must not cost the others their assignments.

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

std::string Replaced(std::string text, std::string_view what, std::uint16_t port) {
  const std::string value = "port_value: ";
  const std::size_t at = text.find(value + std::string(what));
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at + value.size(), what.size(), std::to_string(port));
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
  std::string config = ReadFile(SourcePath("deploy/envoy/rlqs.yaml"));
  config = Replaced(std::move(config), "10000", port);
  config = Replaced(std::move(config), "8000", upstream.port());
  config = Replaced(std::move(config), "8081", grpc);
  config = Replaced(std::move(config), "8082", grpc);
  EnvoyServer envoy(config, port);

  HttpClient client(port);
  const auto status = [&](const std::string& user) {
    return client.Get("/", {{"x-user", user}}).status;
  };
  ASSERT_TRUE(WaitUntil([&] { return status("anna") == 200; }));
  // Together more than a message of Envoy's, which reports all buckets that it knows, may have.
  for (char c = 'a'; c <= 'o'; ++c) EXPECT_NE(status(std::string(50'000, c)), 200) << c;
  // Envoy reports every five seconds, and an assignment lasts for three.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(14);
  while (std::chrono::steady_clock::now() < end) {
    (void)status("anna");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  int admitted = 0;
  for (int i = 0; i < 10; ++i) admitted += status("anna") == 200 ? 1 : 0;
  EXPECT_GT(admitted, 0) << "the assignment was not renewed";
  EXPECT_TRUE(WaitUntil([&] { return status("ben") == 200; }, std::chrono::seconds(2)));
}

}  // namespace
}  // namespace weir::test
