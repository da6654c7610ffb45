// `weir dispatch --store` works on the database itself. Its claims are in the audit log of a
// service that uses the database, and its metrics show the backlog there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "support/child_process.h"
#include "support/http_client.h"
#include "support/paths.h"
#include "support/postgres_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::slots {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class DirectDispatch : public testing::Test {
 protected:
  DirectDispatch() : client_(weir_.Port("http")) {
    Post("/admin/rate-limit/config",
         R"({"configName":"pay","windowSize":"PT1S","maxPerWindow":1000})", 201);
  }

  void Post(const std::string& path, const std::string& body, int status) {
    const auto answer = client_.Post(path, body);
    ASSERT_EQ(answer.status, status) << answer.body;
  }
  bool Says(test::HttpClient& client, const std::string& path, const std::string& text) {
    return test::WaitUntil([&] { return client.Get(path).body.find(text) != std::string::npos; },
                           std::chrono::seconds(60));
  }

  test::TempDir dir_;
  test::PostgresServer postgres_;
  test::WeirProcess weir_{{"serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off",
                           "--data", (dir_ / "data").string(), "--slots-store", postgres_.url()}};
  test::HttpClient client_;
};

// Another service on the same database has closed the bank at weekends; this one caches the
// config for five seconds.
TEST_F(DirectDispatch, AChangeOfAConfigKeepsWhatAnotherServiceHasJustChanged) {
  ASSERT_EQ(client_.Get("/admin/rate-limit/config/pay").status, 200);
  postgres_.Query(
      "SELECT weir_slots_put_config('pay', 1000, 1000, 7, 7, '{}', '{}', 0, "
      "'UTC MON,TUE,WED,THU,FRI 08:00-17:00', 0::smallint)");
  const test::RunResult run = test::RunProgram(
      {test::Program(), "slots", "config", "set", "pay", "--max", "5"},
      {.env = {"WEIR_URL=http://127.0.0.1:" + std::to_string(weir_.Port("http"))}});
  EXPECT_EQ(run.exit_code, 0) << run.error_output;
  const std::string now = client_.Get("/admin/rate-limit/config/pay").body;
  EXPECT_THAT(now, AllOf(HasSubstr(R"("version":3)"), HasSubstr(R"("maxPerWindow":5)"),
                         HasSubstr(R"("headroom":7)"), HasSubstr(R"("cutOff":"17:00")")));
}

TEST_F(DirectDispatch, ItsClaimsAreAuditedAlsoIfItIsKilled) {
  Post("/api/v1/slots/batch",
       R"({"events":[{"eventId":"a","configName":"pay","requestedTime":"2025-06-01T09:00:00Z"},)"
       R"({"eventId":"b","configName":"pay","requestedTime":"2025-06-01T09:00:00Z"}]})",
       200);
  test::ChildProcess dispatcher({test::Program(), "dispatch", "--store", postgres_.url(),
                                 "--config", "pay", "--name", "night-shift", "--metrics", "0"});
  const auto line = dispatcher.WaitForError("listening metrics 127.0.0.1:");
  ASSERT_TRUE(line) << dispatcher.error_output();
  test::HttpClient metrics(
      static_cast<std::uint16_t>(std::stoi(line->substr(line->rfind(':') + 1))));
  ASSERT_TRUE(Says(client_, "/api/v1/slots/b", R"("state":"DONE")")) << dispatcher.error_output();
  EXPECT_TRUE(Says(metrics, "/metrics", "weir_slots_due{config=\"pay\"} 0\n"));
  EXPECT_TRUE(Says(metrics, "/metrics", "weir_slots_catch_up_seconds{config=\"pay\"} 0\n"));
  EXPECT_THAT(metrics.Get("/metrics").body,
              AllOf(HasSubstr("weir_slots_window_cap{config=\"pay\"} 1000\n"),
                    HasSubstr("weir_slots_store_up 1\n")));
  dispatcher.Kill();
  EXPECT_EQ(postgres_.Query("SELECT sum(events) FROM rate_limit_claim_note"), "2");
  // Ends the minute.
  postgres_.Query("UPDATE rate_limit_claim_note SET minute = minute - 120000");
  EXPECT_TRUE(Says(client_, "/admin/audit", R"("who":"database: night-shift")"));
  EXPECT_THAT(client_.Get("/admin/audit").body,
              AllOf(HasSubstr(R"("action":"slot.claim")"), HasSubstr(R"("target":"pay")"),
                    HasSubstr(R"("count":2)")));
  EXPECT_TRUE(test::WaitUntil(
      [&] { return postgres_.Query("SELECT count(*) FROM rate_limit_claim_note") == "0"; }));
}

}  // namespace
}  // namespace weir::slots
