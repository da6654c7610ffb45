// A Redis that comes back empty gives everybody a full quota. That is said where an operator looks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "e2e/stores/nodes.h"
#include "support/http_client.h"
#include "support/redis_server.h"
#include "support/wait.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LostState, IsInTheLogTheMetricsAndTheStatus) {
  RedisServer redis;
  Nodes nodes(1, redis.url(), "policies: []\n", {"--store-timeout", "2s", "--threads", "1"});
  HttpClient client(nodes.ports()[0]);
  const auto metrics = [&] { return client.Get("/metrics").body; };
  const auto status = [&] { return client.Get("/admin/status").body; };
  EXPECT_THAT(metrics(), HasSubstr("\nweir_store_lost_state_total 0\n"));
  EXPECT_THAT(status(), Not(HasSubstr("timesLostData")));
  ASSERT_TRUE(WaitUntil([&] { return redis.Command({"EXISTS", "weir:mark:0#"})[0] == '1'; }));
  redis.Command({"FLUSHALL"});
  ASSERT_TRUE(WaitUntil(
      [&] { return metrics().find("\nweir_store_lost_state_total 1\n") != std::string::npos; }));
  EXPECT_THAT(status(), HasSubstr(R"("timesLostData":1,"lostDataAt":"20)"));
  EXPECT_THAT(nodes[0].process().error_output(), HasSubstr("Redis has lost data"));
}

}  // namespace
}  // namespace weir::test
