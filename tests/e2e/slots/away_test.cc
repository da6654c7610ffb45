#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/http_client.h"
#include "support/postgres_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

// A service whose slot database fails and recovers.

namespace weir::slots {
namespace {

TEST(SlotsAway, ReadyzNamesTheDatabaseAndStaysReady) {
  test::PostgresServer server;
  const test::TempDir dir;
  test::WeirProcess weir({"serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off",
                          "--data", (dir / "data").string(), "--slots-store", server.url()});
  test::HttpClient client(weir.Port("http"));
  const auto says = [&](const std::string& text) {
    return test::WaitUntil([&] {
      const auto answer = client.Get("/readyz");
      return answer.status == 200 && answer.body == text;
    });
  };
  EXPECT_TRUE(says("ready\n"));
  server.Crash();
  EXPECT_TRUE(says("ready, degraded: the database of slots is down\n"));
  EXPECT_THAT(client.Get("/metrics").body, testing::HasSubstr("weir_slots_store_up 0\n"));
  EXPECT_THAT(client.Get("/admin/status").body, testing::HasSubstr(R"("down":["slots"])"));
  server.Start();
  EXPECT_TRUE(says("ready\n"));
}

}  // namespace
}  // namespace weir::slots
