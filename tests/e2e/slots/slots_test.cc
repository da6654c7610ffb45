#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "slots/time.h"
#include "support/child_process.h"
#include "support/http_client.h"
#include "support/paths.h"
#include "support/postgres_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

// The program as seen by its users: `weir serve`, the HTTP API, and `weir slots`, on both stores.

namespace weir::slots {
namespace {

using testing::HasSubstr;

constexpr Millis kNine = 1'748'768'400'000;  // 2025-06-01T09:00:00Z, a multiple of 4,000

class Slots : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::vector<std::string> args = {"serve",  "--http", "127.0.0.1:0", "--grpc",     "off",
                                     "--resp", "off",    "--data",      dir_ / "data"};
    if (GetParam() == "postgres") {
      server_ = std::make_unique<test::PostgresServer>();
      args.insert(args.end(), {"--slots-store", server_->url()});
    }
    weir_ = std::make_unique<test::WeirProcess>(args);
    port_ = weir_->Port("http");
    http_ = std::make_unique<test::HttpClient>(port_, "127.0.0.1", std::chrono::seconds(60));
  }

  void Configure(int max) {
    const auto made = http_->Post("/admin/rate-limit/config",
                                  R"({"configName":"default","windowSize":"PT4S","maxPerWindow":)" +
                                      std::to_string(max) + "}");
    ASSERT_EQ(made.status, 201) << made.body;
  }

  test::RunResult Tool(std::vector<std::string> words) {
    std::vector<std::string> argv = {test::Program(), "slots"};
    argv.insert(argv.end(), words.begin(), words.end());
    argv.insert(argv.end(), {"--url", "http://127.0.0.1:" + std::to_string(port_)});
    return test::RunProgram(argv, {}, std::chrono::minutes(3));
  }

  static std::string Event(const std::string& id,
                           const std::string& time = "2025-06-01T09:00:00Z") {
    return R"({"eventId":")" + id + R"(","configName":"default","requestedTime":")" + time + "\"}";
  }

  // Leaves what an import to `out` that was killed after `answered` events would leave.
  void Cut(const std::string& out, const std::vector<std::string>& words, int answered) {
    std::filesystem::remove(dir_ / out);
    std::filesystem::create_directory(dir_ / out);  // the results cannot replace it
    EXPECT_EQ(Tool(words).exit_code, 1);
    std::filesystem::remove(dir_ / out);
    const std::string part = test::ReadFile(dir_ / (out + ".part"));
    std::size_t end = 0;
    for (int i = 0; i <= answered; ++i) end = part.find('\n', end) + 1;
    dir_.Write(out + ".part", part.substr(0, end + 20));
  }

  test::TempDir dir_;
  std::unique_ptr<test::PostgresServer> server_;
  std::unique_ptr<test::WeirProcess> weir_;
  std::uint16_t port_ = 0;
  std::unique_ptr<test::HttpClient> http_;
};

TEST_P(Slots, AnswerAsTheReferenceSays) {
  EXPECT_EQ(http_->Post("/api/v1/slots", Event("e1")).status, 404);
  Configure(2);
  const auto fresh = http_->Post("/api/v1/slots", Event("e1", "2025-06-01T11:00:00+02:00"));
  ASSERT_EQ(fresh.status, 200) << fresh.body;
  EXPECT_THAT(fresh.body, HasSubstr(R"("requestedTime":"2025-06-01T09:00:00Z")"));
  EXPECT_THAT(fresh.body, HasSubstr(R"("windowStart":"2025-06-01T09:00:00Z")"));
  EXPECT_THAT(fresh.body, HasSubstr(R"("status":"NEW")"));
  const auto again = http_->Post("/api/v1/slots", Event("e1"));
  EXPECT_THAT(again.body, HasSubstr(R"("status":"EXISTING")"));
  const std::size_t head = fresh.body.find("\"status\"");
  EXPECT_EQ(again.body.substr(0, head), fresh.body.substr(0, head));
  EXPECT_THAT(http_->Get("/api/v1/slots/e1").body, HasSubstr(R"("state":"SCHEDULED")"));
  EXPECT_EQ(http_->Get("/api/v1/slots/none").status, 404);

  const auto wrong = http_->Post("/api/v1/slots", Event("e2", "tomorrow"));
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.body, HasSubstr("requestedTime"));

  const auto batch =
      http_->Post("/api/v1/slots/batch", R"({"events":[)" + Event("b1") + "," + Event("b2", "x") +
                                             "," + Event("e1") + "," + Event("b3") + "]}");
  ASSERT_EQ(batch.status, 200) << batch.body;
  EXPECT_LT(batch.body.find("\"b1\""), batch.body.find("\"INVALID\""));
  EXPECT_LT(batch.body.find("\"INVALID\""), batch.body.find("\"EXISTING\""));
  EXPECT_LT(batch.body.find("\"EXISTING\""), batch.body.find("\"b3\""));

  const auto moved =
      http_->Post("/api/v1/slots/e1/reschedule", R"({"requestedTime":"2025-06-01T10:00:00Z"})");
  EXPECT_EQ(moved.status, 200);
  EXPECT_THAT(moved.body, HasSubstr(R"("windowStart":"2025-06-01T10:00:00Z")"));
  const auto gone = http_->Send("DELETE", "/api/v1/slots/e1");
  EXPECT_EQ(gone.status, 200);
  EXPECT_THAT(gone.body, HasSubstr("CANCELLED"));
  EXPECT_EQ(http_->Send("DELETE", "/api/v1/slots/e1").status, 200);
  EXPECT_EQ(http_->Send("DELETE", "/api/v1/slots/none").status, 404);
}

TEST_P(Slots, ACancelledEventStaysCancelledAndAnotherConfigsIdIsAConflict) {
  Configure(2);
  http_->Post("/api/v1/slots", Event("e1"));
  http_->Send("DELETE", "/api/v1/slots/e1");
  const auto again = http_->Post("/api/v1/slots", Event("e1"));
  EXPECT_EQ(again.status, 409);
  EXPECT_THAT(again.body, HasSubstr("was cancelled"));
  EXPECT_EQ(
      http_->Post("/api/v1/slots/e1/reschedule", R"({"requestedTime":"2025-06-01T10:00:00Z"})")
          .status,
      409);
  EXPECT_EQ(http_->Post("/api/v1/slots/e1/restore", "").status, 200);
  EXPECT_THAT(http_->Post("/api/v1/slots", Event("e1")).body, HasSubstr("EXISTING"));
  const auto other = http_->Post("/api/v1/slots", Event("e1", "2025-06-01T09:00:01Z"));
  EXPECT_EQ(other.status, 409);
  EXPECT_THAT(other.body, HasSubstr("belongs to config 'default'"));
  EXPECT_THAT(http_
                  ->Post("/api/v1/slots/batch",
                         R"({"events":[)" + Event("e1", "2025-06-01T09:00:01Z") + "]}")
                  .body,
              HasSubstr(R"("status":"CONFLICT")"));
  std::string richer = Event("e1");
  richer.insert(richer.size() - 1, R"(,"payload":"20 EUR")");
  const auto changed = http_->Post("/api/v1/slots", richer);
  EXPECT_EQ(changed.status, 409);
  EXPECT_THAT(changed.body, HasSubstr("'e1' belongs to an event with another payload"));
  for (const char* action : {"slot.cancel", "slot.restore"}) {
    const auto written = [&] {
      return http_->Get("/admin/audit").body.find(action) != std::string::npos;
    };
    EXPECT_TRUE(test::WaitUntil(written)) << action;
  }
}

TEST_P(Slots, DueEventsAreClaimedOnceAndFinished) {
  Configure(2);
  for (const char* event : {"e1", "e2", "e3"}) http_->Post("/api/v1/slots", Event(event));
  EXPECT_THAT(http_->Get("/api/v1/slots/due?config=default&limit=2").body, HasSubstr("\"next\":"));
  const auto claim = http_->Post("/api/v1/slots/claim", R"({"config":"default","max":10})");
  ASSERT_EQ(claim.status, 200) << claim.body;
  EXPECT_THAT(claim.body, HasSubstr(R"("attempt":1,"redelivered":false)"));
  EXPECT_THAT(claim.body, testing::Not(HasSubstr("\"e3\""))) << "two in a window";
  EXPECT_EQ(http_->Post("/api/v1/slots/e1/done", R"({"attempt":1})").status, 200);
  EXPECT_EQ(http_->Post("/api/v1/slots/e1/done", R"({"attempt":2})").status, 409);
  EXPECT_EQ(http_->Post("/api/v1/slots/none/done", R"({"attempt":1})").status, 404);
  const auto failed = http_->Post(
      "/api/v1/slots/failed", R"({"events":[{"eventId":"e2","attempt":1,"error":"no account"}]})");
  EXPECT_THAT(failed.body, HasSubstr(R"("status":"FAILED")"));
  EXPECT_THAT(http_->Get("/api/v1/slots/e2").body, HasSubstr("no account"));
  EXPECT_THAT(http_->Get("/api/v1/slots/e1").body, HasSubstr(R"("state":"DONE")"));
  EXPECT_EQ(http_->Send("DELETE", "/api/v1/slots/e1").status, 409);
  EXPECT_THAT(http_->Get("/admin/rate-limit/backlog").body, HasSubstr(R"("due":1,)"));
  EXPECT_EQ(http_->Post("/api/v1/slots/claim", R"({"config":"nobody"})").status, 404);
  EXPECT_EQ(http_->Get("/api/v1/slots/due?config=nobody").status, 404);
  EXPECT_EQ(http_->Get("/api/v1/slots/due?config=default&before=2020-01-01T00:00:00Z").body,
            R"({"events":[]})");
  EXPECT_EQ(http_->Send("DELETE", "/api/v1/slots/e2").status, 200) << "a dead letter is given up";
  EXPECT_EQ(http_->Post("/api/v1/slots/claim", R"({"config":"default","max":0})").status, 400);
}

TEST_P(Slots, ConfigsCanBeManaged) {
  Configure(2);
  Configure(3);
  EXPECT_THAT(http_->Get("/admin/rate-limit/config/default").body, HasSubstr(R"("version":2)"));
  EXPECT_THAT(http_->Get("/admin/rate-limit/config").body, HasSubstr(R"("maxPerWindow":3)"));
  EXPECT_THAT(http_->Get("/admin/rate-limit/config/default/versions").body,
              HasSubstr(R"("version":1)"));
  ASSERT_EQ(http_->Post("/api/v1/slots", Event("cached")).status, 200);
  EXPECT_EQ(http_->Post("/admin/rate-limit/cache/flush", "").body, R"({"flushed":1})");
  EXPECT_EQ(http_->Post("/admin/rate-limit/cache/flush", "").body, R"({"flushed":0})");
  EXPECT_EQ(http_->Send("DELETE", "/admin/rate-limit/config/default").status, 200);
  EXPECT_EQ(http_->Get("/admin/rate-limit/config/default").status, 404);
  EXPECT_EQ(http_->Post("/api/v1/slots", Event("e")).status, 404);
  const auto wrong = http_->Post("/admin/rate-limit/config",
                                 R"({"configName":"x","windowSize":"4 seconds","maxPerWindow":1})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.body, HasSubstr("windowSize"));
}

TEST_P(Slots, HalfAMillionEventsForOneTimeEndWhereArithmeticSays) {
  Configure(100);
  constexpr int kEvents = 500'000;
  // 5,000 windows of 100: the last one begins 4,999 × 4 s = 5 h 33 min 16 s after 09:00.
  const std::string last = FormatInstant(kNine + Millis{4'999} * 4'000);
  ASSERT_EQ(last, "2025-06-01T14:33:16Z");
  EXPECT_THAT(Tool({"forecast", "--config", "default", "--count", std::to_string(kEvents), "--at",
                    "2025-06-01T09:00:00Z", "--json"})
                  .output,
              HasSubstr(R"("lastWindow":")" + last));
  {
    std::ofstream feed(dir_ / "feed.csv");
    feed << "eventId\n";
    for (int i = 0; i < kEvents; ++i) feed << "0c9f2a4e-77d1-4c1b-9a55-" << i << '\n';
  }
  const auto imported = Tool({"import", (dir_ / "feed.csv").string(), "--config", "default", "--at",
                              "2025-06-01T09:00:00Z", "--quiet"});
  EXPECT_EQ(imported.exit_code, 0) << imported.error_output;
  EXPECT_THAT(imported.output, HasSubstr("500000 new"));
  EXPECT_THAT(imported.output, HasSubstr("last window " + last));
  const auto verified = Tool({"verify"});
  EXPECT_EQ(verified.exit_code, 0) << verified.output;
  EXPECT_THAT(verified.output, HasSubstr("500000 slots, 0 problems"));
  const auto plotted = Tool({"plot", "--config", "default", "--svg", (dir_ / "load.svg").string()});
  EXPECT_EQ(plotted.exit_code, 0);
  EXPECT_THAT(plotted.output, HasSubstr("100/100"));
  EXPECT_THAT(test::ReadFile(dir_ / "load.svg"), HasSubstr("<svg"));
}

TEST_P(Slots, AnInterruptedImportGoesOnWhereItStopped) {
  Configure(10);
  {
    std::ofstream feed(dir_ / "feed.jsonl");
    for (int i = 0; i < 3'000; ++i) feed << Event("j" + std::to_string(i)) << '\n';
  }
  const std::vector<std::string> words = {
      "import", (dir_ / "feed.jsonl").string(),   "--batch", "100", "--quiet",
      "--out",  (dir_ / "answers.jsonl").string()};
  ASSERT_EQ(Tool(words).exit_code, 0);
  const std::string whole = test::ReadFile(dir_ / "answers.jsonl");
  Cut("answers.jsonl", words, 1'500);
  const auto resumed = Tool(words);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.error_output;
  EXPECT_THAT(resumed.output, HasSubstr("0 new, 3000 existing"));
  EXPECT_THAT(resumed.output, HasSubstr("1500 were answered before"));
  // The same answers, except for the status of those that were requested twice.
  std::string expected = whole;
  for (std::size_t at = 0; (at = expected.find("\"NEW\"", at)) != std::string::npos;) {
    expected.replace(at, 5, "\"EXISTING\"");
  }
  EXPECT_EQ(test::ReadFile(dir_ / "answers.jsonl"), expected);
}

// After repeating an interrupted import, one sees only the last exit code.
TEST_P(Slots, AResumedImportStillTellsOfTheConflictsBefore) {
  Configure(10);
  http_->Post("/api/v1/slots", Event("j0", "2025-06-01T08:00:00Z"));
  {
    std::ofstream feed(dir_ / "feed.jsonl");
    for (int i = 0; i < 3; ++i) feed << Event("j" + std::to_string(i)) << '\n';
  }
  for (const char* out : {"answers.jsonl", "answers.csv"}) {
    const std::vector<std::string> words = {"import", (dir_ / "feed.jsonl").string(), "--quiet",
                                            "--out", (dir_ / out).string()};
    const auto whole = Tool(words);
    EXPECT_EQ(whole.exit_code, 3) << whole.error_output;
    EXPECT_THAT(whole.output, HasSubstr("1 in conflict"));
    Cut(out, words, 1);
    const auto resumed = Tool(words);
    EXPECT_EQ(resumed.exit_code, 3) << resumed.output;
    EXPECT_THAT(resumed.output, HasSubstr("2 existing, 0 refused, 1 in conflict"));
    EXPECT_THAT(resumed.output, HasSubstr("1 was answered before"));
  }
}

TEST_P(Slots, AreKeptThroughKill9) {
  Configure(10);
  const auto fresh = http_->Post("/api/v1/slots", Event("e1"));
  ASSERT_EQ(fresh.status, 200);
  weir_->process().Kill();
  std::vector<std::string> args = {"serve",  "--http", "127.0.0.1:0", "--grpc",     "off",
                                   "--resp", "off",    "--data",      dir_ / "data"};
  if (server_) args.insert(args.end(), {"--slots-store", server_->url()});
  test::WeirProcess again(args);
  test::HttpClient http(again.Port("http"));
  const auto kept = http.Post("/api/v1/slots", Event("e1"));
  EXPECT_EQ(kept.body.substr(0, kept.body.find("\"status\"")),
            fresh.body.substr(0, fresh.body.find("\"status\"")));
}

TEST_P(Slots, AnswerFiveHundredAndThreeWhileTheStoreIsAway) {
  if (!server_) GTEST_SKIP() << "the embedded store is never away";
  Configure(10);
  server_->Stop();
  const auto away = http_->Post("/api/v1/slots", Event("e1"));
  EXPECT_EQ(away.status, 503) << away.body;
  server_->Start();
  int status = 0;
  for (int i = 0; i < 200 && status != 200; ++i) {
    status = http_->Post("/api/v1/slots", Event("e1")).status;
  }
  EXPECT_EQ(status, 200);
}

INSTANTIATE_TEST_SUITE_P(Stores, Slots, testing::Values("sqlite", "postgres"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace weir::slots
