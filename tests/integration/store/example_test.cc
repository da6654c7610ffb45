// The example of docs/guide/embedding-a-store.md, against a real server.

#include <gtest/gtest.h>

#include <algorithm>

#include "support/child_process.h"
#include "support/postgres_server.h"

namespace weir {
namespace {

TEST(SharedStoreExample, ProcessesShareTheirLimit) {
  test::PostgresServer server;
  const test::RunResult first = test::RunProgram({WEIR_EXAMPLE, server.url()});
  EXPECT_EQ(first.exit_code, 0) << first.error_output;
  // 12 asked for 10.
  EXPECT_TRUE(first.output.starts_with("job done, 9 left\njob done, 8 left\n")) << first.output;
  EXPECT_TRUE(first.output.ends_with("job done, 0 left\nno more this hour\nno more this hour\n"));
  const test::RunResult second = test::RunProgram({WEIR_EXAMPLE, server.url()});
  EXPECT_EQ(second.output.find("done"), std::string::npos) << second.output;
  EXPECT_EQ(std::ranges::count(second.output, '\n'), 12);
}

}  // namespace
}  // namespace weir
