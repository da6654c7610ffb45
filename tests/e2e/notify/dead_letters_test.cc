// Dead letters that cannot be replayed do not block those that can.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "drivers/sqlite/database.h"
#include "support/http_client.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::notify {
namespace {

using testing::HasSubstr;

// A call replays at most a thousand: here the oldest thousand were never valid events.
TEST(DeadLetters, AllIsReplayedBehindAThousandThatCannotBe) {
  const test::TempDir dir;
  const std::string data = (dir / "data").string();
  const auto start = [&] {
    return std::make_unique<test::WeirProcess>(std::vector<std::string>{
        "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--data", data});
  };
  {  // creates the tables
    auto first = start();
    first->Port("http");
    EXPECT_EQ(first->process().Terminate(), 0);
  }
  {
    auto database = weir::sqlite::Database::Open({.path = data + "/weir.db"});
    ASSERT_TRUE(database.ok()) << database.error().message;
    const Status filled = (*database)->WriteAndWait([](weir::sqlite::Connection& connection) {
      return connection.Execute(
          "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
          "INSERT INTO notify_dead_letter(event, error, failed_at, event_id, user_id, attempts) "
          "SELECT 'no event', 'an event must be a JSON object', i, 'outbox-' || i, '', 0 FROM n;"
          "INSERT INTO notify_dead_letter(event, error, failed_at, event_id, user_id, attempts) "
          "VALUES ('{\"id\":\"id-1\",\"userId\":\"42\",\"message\":\"hello\"}', 'no', 5000, "
          "'id-1', '42', 5);");
    });
    ASSERT_TRUE(filled.ok()) << filled.error().message;
  }
  auto weir = start();
  test::HttpClient client(weir->Port("http"));
  EXPECT_THAT(client.Post("/admin/notify/dead/replay", R"({"all":true})").body,
              HasSubstr(R"({"replayed":1,"more":false,"eventIds":["id-1"]})"));
  EXPECT_TRUE(test::WaitUntil([&] {
    return weir->process().output().find(R"(SMS SENT userId="42" message="hello")") !=
           std::string::npos;
  }));
  // Dropping removes them.
  EXPECT_THAT(client.Post("/admin/notify/dead/drop", R"({"all":true})").body,
              HasSubstr(R"({"dropped":1000,)"));
}

}  // namespace
}  // namespace weir::notify
