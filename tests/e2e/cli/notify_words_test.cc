// weir notify against a running service: users as CSV, states of messages, dead letters,
// preferences, and the cap of users without their own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "e2e/cli/exit_codes.h"
#include "support/child_process.h"
#include "support/http_client.h"
#include "support/paths.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class NotifyWords : public ::testing::Test {
 protected:
  /// Messages on other channels than sms become dead letters.
  void Serve(std::vector<std::string> env = {}) {
    env.emplace_back("WEIR_NOTIFY_PROVIDERS=sms=console:");
    weir_.emplace(std::vector<std::string>{"serve", "--http", "127.0.0.1:0", "--grpc", "off",
                                           "--resp", "off", "--data", (dir_ / "data").string()},
                  SpawnOptions{.env = std::move(env)});
    url_ = "WEIR_URL=http://127.0.0.1:" + std::to_string(weir_->Port("http"));
  }
  RunResult Notify(std::vector<std::string> words) const {
    words.insert(words.begin(), {Program(), "notify"});
    return RunProgram(words, {.env = {url_}});
  }
  /// Sends a message and returns its id.
  std::string Send(const std::string& user, const std::string& text, const std::string& channel) {
    const RunResult sent = Notify({"send", user, text, "--channel", channel, "--json"});
    EXPECT_EQ(sent.exit_code, kOk) << sent.error_output;
    const std::size_t at = sent.output.find("\"eventId\":\"") + 11;
    return sent.output.substr(at, sent.output.find('"', at) - at);
  }
  bool WaitForState(const std::string& id, const std::string& state) {
    return WaitUntil([&] {
      return Notify({"message", id, "--json"}).output.find("\"state\":\"" + state + "\"") !=
             std::string::npos;
    });
  }

  const TempDir dir_;
  std::optional<WeirProcess> weir_;
  std::string url_;
};

TEST_F(NotifyWords, UsersAreWrittenAndReadAsCsv) {
  Serve();
  ASSERT_EQ(Notify({"config", "ann", "--limit", "3", "--window", "60m"}).exit_code, kOk);
  const RunResult bare = Notify({"config", "ann", "--limit", "3", "--window", "60"});
  EXPECT_EQ(bare.exit_code, kUsage);
  EXPECT_THAT(bare.error_output, HasSubstr("such as 60m, 2h or 1d, got"));
  ASSERT_EQ(Notify({"config", "a,\"b\"", "--limit", "5", "--window", "1d"}).exit_code, kOk);
  ASSERT_EQ(
      Notify({"config", "ann", "--channel", "email", "--limit", "1", "--window", "1d"}).exit_code,
      kOk);
  const std::string file = (dir_ / "users.csv").string();
  ASSERT_EQ(Notify({"export", file}).exit_code, kOk);
  const std::string caps = ReadFile(file);
  EXPECT_EQ(caps,
            "userId,rateLimit,timeWindow,channel\n"
            "\"a,\"\"b\"\"\",5,1440,\nann,3,60,\nann,1,1440,email\n");
  for (const char* user : {"ann", "a,\"b\""}) {
    EXPECT_EQ(Notify({"remove", user}).exit_code, kOk) << user;
    EXPECT_EQ(Notify({"remove", user}).exit_code, kRefused) << user;
  }
  EXPECT_EQ(Notify({"remove", "ann", "--channel", "email"}).exit_code, kOk);
  EXPECT_EQ(Notify({"export", "-"}).output, "userId,rateLimit,timeWindow,channel\n");

  EXPECT_EQ(Notify({"import", file}).output, "3 caps imported\n");
  EXPECT_EQ(Notify({"export", "-"}).output, caps);
  const std::string wrong =
      dir_.Write("wrong.csv", "bob,7,2h\nbob\ncarl,many,60,\ndan,0,60,\neve,2,60,No!\nfay,2,2x\n")
          .string();
  const RunResult some = Notify({"import", wrong});
  EXPECT_EQ(some.exit_code, kNo);
  EXPECT_EQ(some.output, "1 cap imported, 5 lines skipped\n");
  EXPECT_THAT(some.error_output,
              AllOf(HasSubstr("line 2: "), HasSubstr("line 3: "), HasSubstr("line 4: "),
                    HasSubstr("line 5: "), HasSubstr("line 6: ")));
  EXPECT_THAT(Notify({"config", "bob"}).output, ContainsRegex("timeWindow +120\n"));
  EXPECT_THAT(Notify({"config", "bob"}).output, ContainsRegex("rateLimit +7\n"));
  // User 7 must not get bob's cap.
  const RunResult swapped = Notify(
      {"import", dir_.Write("swapped.csv", "rateLimit,userId,timeWindow\n7,99,1\n").string()});
  EXPECT_EQ(swapped.exit_code, kUsage);
  EXPECT_THAT(swapped.error_output, HasSubstr("line 1: the header must be userId,rateLimit"));
  EXPECT_EQ(Notify({"config", "7"}).exit_code, kRefused);
  EXPECT_EQ(Notify({"import", dir_.Write("excel.csv",
                                         "\xEF\xBB\xBFuserId,rateLimit,timeWindow\r\n"
                                         "gil,4,60\r\n")
                                  .string()})
                .output,
            "1 cap imported\n");
}

TEST_F(NotifyWords, DeadLettersAreListedShownReplayedAndDropped) {
  Serve();
  ASSERT_EQ(Notify({"config", "ann", "--limit", "100", "--window", "60m"}).exit_code, kOk);
  const std::string sent = Send("ann", "hello", "sms");
  const std::string one = Send("ann", "sesame one", "fax");
  const std::string two = Send("ann", "sesame two", "fax");
  ASSERT_TRUE(WaitForState(sent, "SENT"));
  ASSERT_TRUE(WaitForState(one, "DEAD") && WaitForState(two, "DEAD"));
  EXPECT_THAT(Notify({"messages", "--user", "ann", "--state", "dead"}).output,
              AllOf(HasSubstr(one), HasSubstr(two), HasSubstr("channel fax has no provider"),
                    Not(HasSubstr(sent)), Not(HasSubstr("sesame"))));
  EXPECT_THAT(Notify({"dead", "list"}).output,
              AllOf(HasSubstr(one), HasSubstr(two), Not(HasSubstr("sesame"))));
  EXPECT_THAT(Notify({"dead", "list", "--user", "bob"}).output, Not(HasSubstr(one)));
  EXPECT_THAT(Notify({"dead", "show", one}).output, ContainsRegex("message +sesame one\n"));

  const RunResult unknown = Notify({"dead", "replay", "nobody"});
  EXPECT_EQ(unknown.exit_code, kRefused);
  EXPECT_THAT(unknown.error_output, HasSubstr("no dead letter has eventId 'nobody'"));
  EXPECT_THAT(RunProgram({Program(), "audit"}, {.env = {url_}}).output,
              Not(HasSubstr("notify.replay")));
  EXPECT_EQ(Notify({"dead", "replay"}).exit_code, kUsage);
  // Its channel still has no provider.
  EXPECT_EQ(Notify({"dead", "replay", one}).output, "1 replayed\n");
  EXPECT_TRUE(WaitForState(one, "DEAD"));
  EXPECT_EQ(Notify({"dead", "drop", one}).output, "1 dropped\n");
  EXPECT_TRUE(WaitForState(one, "DROPPED"));
  EXPECT_EQ(Notify({"dead", "drop", "--user", "ann"}).output, "1 dropped\n");
  EXPECT_EQ(Notify({"dead", "drop", "--all"}).output, "0 dropped\n");
}

// More than a call replays, and each fails again before the next call.
TEST_F(NotifyWords, ReplayingAllEndsAlsoIfAllDieAgain) {
  Serve({"WEIR_NOTIFY_DEFAULT_CAP=1000000/60m"});
  HttpClient client(weir_->Port("http"));
  constexpr int kMessages = 1'100;  // a call replays 1,000
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_EQ(client.Post("/api/send", R"({"userId":"ann","message":"x","channel":"fax"})").status,
              200);
  }
  const auto dead = [&] {
    return client.Get("/admin/notify").body.find("\"deadLetters\":" + std::to_string(kMessages)) !=
           std::string::npos;
  };
  ASSERT_TRUE(WaitUntil(dead));
  const RunResult replayed = Notify({"dead", "replay", "--all"});
  EXPECT_EQ(replayed.exit_code, kOk) << replayed.error_output;
  EXPECT_EQ(replayed.output, std::to_string(kMessages) + " replayed\n");
  EXPECT_TRUE(WaitUntil(dead));
}

TEST_F(NotifyWords, WishesAreSetShownAndKept) {
  Serve();
  ASSERT_EQ(Notify({"config", "ann", "--limit", "100", "--window", "60m"}).exit_code, kOk);
  ASSERT_EQ(Notify({"preferences", "ann", "--quiet", "00:00-00:00", "--opt-out", "push"}).exit_code,
            kUsage)
      << "hours without an end";
  ASSERT_EQ(Notify({"preferences", "ann", "--opt-out", "push"}).exit_code, kOk);
  EXPECT_THAT(Notify({"preferences", "ann", "--json"}).output, HasSubstr("\"optOut\":[\"push\"]"));
  EXPECT_TRUE(WaitForState(Send("ann", "hello", "push"), "DROPPED"));
  EXPECT_EQ(Notify({"preferences", "ann", "--quiet", "22:00", "--zone", "UTC"}).exit_code, kUsage);
  EXPECT_EQ(
      Notify({"preferences", "ann", "--quiet", "22:00-07:00", "--zone", "No/Where"}).exit_code,
      kUsage);
  EXPECT_EQ(Notify({"preferences", "ann", "--none"}).exit_code, kOk);
  EXPECT_TRUE(WaitForState(Send("ann", "hello", "push"), "DEAD")) << "it has no provider";
}

// "09:00", in UTC.
std::string HourFromNow(int hours) {
  const auto now = std::chrono::system_clock::now() + std::chrono::hours(hours);
  const auto hour = std::chrono::duration_cast<std::chrono::hours>(now.time_since_epoch()) % 24;
  return (hour.count() < 10 ? "0" : "") + std::to_string(hour.count()) + ":00";
}

TEST_F(NotifyWords, AListShowsUntilWhenAMessageWaits) {
  Serve();
  ASSERT_EQ(Notify({"config", "ann", "--limit", "9", "--window", "60m"}).exit_code, kOk);
  const std::string now = Send("ann", "hello", "sms");
  ASSERT_TRUE(WaitForState(now, "SENT"));
  const std::string morning = HourFromNow(2);
  ASSERT_EQ(
      Notify({"preferences", "ann", "--quiet", HourFromNow(-1) + "-" + morning, "--zone", "UTC"})
          .exit_code,
      kOk);
  const std::string night = Send("ann", "hello", "sms");
  ASSERT_TRUE(WaitUntil([&] {
    return Notify({"message", night}).output.find("notBefore") != std::string::npos;
  }));
  EXPECT_THAT(
      Notify({"messages", "--user", "ann"}).output,
      AllOf(HasSubstr("not before"), ContainsRegex(night + ".*QUEUED +0 .*T" + morning + ":00"),
            Not(ContainsRegex(now + ".*T" + morning + ":00"))));
}

TEST_F(NotifyWords, AUserWithoutACapGetsTheDefaultIfThereIsOne) {
  Serve({"WEIR_NOTIFY_DEFAULT_CAP=2/60m"});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Notify({"send", "new", "hello"}).exit_code, kOk);
  EXPECT_EQ(Notify({"send", "new", "hello"}).exit_code, kNo);
  EXPECT_THAT(Notify({"config", "new"}).output,
              AllOf(ContainsRegex("rateLimit +2\n"), ContainsRegex("timeWindow +60\n")));
  // A cap that is set stays, and the two messages sent before count.
  ASSERT_EQ(Notify({"config", "new", "--limit", "3", "--window", "60m"}).exit_code, kOk);
  EXPECT_EQ(Notify({"send", "new", "hello"}).exit_code, kOk);
  EXPECT_EQ(Notify({"send", "new", "hello"}).exit_code, kNo);
  weir_.reset();
  Serve();
  EXPECT_EQ(Notify({"send", "another", "hello"}).exit_code, kRefused) << "404 without a default";
}

TEST_F(NotifyWords, CapsThatAreSetAgainGiveNobodyAFreshQuota) {
  Serve();
  const auto set = [this](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"config", "u1", "--limit", "1", "--window", "60m"};
    words.insert(words.end(), more.begin(), more.end());
    return Notify(words).exit_code;
  };
  const auto send = [this] { return Notify({"send", "u1", "hello"}).exit_code; };
  const std::string file = dir_.Write("caps.csv", "u1,1,60\n").string();
  EXPECT_EQ(set({}), kOk);
  EXPECT_EQ(send(), kOk);
  EXPECT_EQ(set({}), kOk);
  EXPECT_EQ(send(), kNo);
  EXPECT_EQ(Notify({"import", file}).output, "1 cap imported\n");
  EXPECT_EQ(send(), kNo);
  EXPECT_EQ(set({"--reset-count"}), kOk);
  EXPECT_EQ(send(), kOk);
  // An undo does not free a place either.
  EXPECT_EQ(Notify({"config", "u1", "--limit", "2", "--window", "60m"}).exit_code, kOk);
  const std::uint16_t port = weir_->Port("http");
  const std::string log = HttpClient(port).Get("/admin/audit?limit=1&action=notify.config").body;
  const std::string id =
      log.substr(log.find("\"id\":") + 5, log.find(",\"at\"") - log.find("\"id\":") - 5);
  EXPECT_EQ(HttpClient(port).Post("/admin/audit/" + id + "/undo", "").status, 200);
  EXPECT_EQ(send(), kNo);
  EXPECT_EQ(Notify({"import", "--reset-count", file}).exit_code, kOk);
  EXPECT_EQ(send(), kOk);
}

}  // namespace
}  // namespace weir::test
