#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "slots/time.h"
#include "support/child_process.h"
#include "support/http_client.h"
#include "support/paths.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

// A target that is down for longer than an event has attempts: none of them becomes a dead letter.

namespace weir::slots {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr int kEvents = 6;
constexpr int kCap = 3;
constexpr Millis kWindow = 1'000;

enum class Mode {
  kTakes,
  kRefuses,
  kAnswers503,
  kCloses,
  kHangs,
  kRejects,
  kRedirects,
  kAnswers401,
  kAnswers404
};

/// The bank. Thread-safe.
class Bank {
 public:
  explicit Bank(Mode mode) { Set(mode); }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/pay"; }

  void Set(Mode mode) {
    mode_ = mode;
    if (server_ && mode != Mode::kRefuses) return;
    if (!server_) {
      server_ = std::make_unique<test::TcpServer>(
          [this](test::TcpConnection& connection) { Serve(connection); }, port_);
      port_ = server_->port();
    }
    if (mode == Mode::kRefuses) server_.reset();
  }

  std::map<std::string, int> taken() const {
    const std::lock_guard lock(mutex_);
    return taken_;
  }
  int fullest() const {
    const std::lock_guard lock(mutex_);
    int most = 0;
    for (const auto& [window, count] : windows_) most = std::max(most, count);
    return most;
  }

 private:
  void Serve(test::TcpConnection& connection) {
    for (;;) {
      const std::string head = connection.ReadThrough("\r\n\r\n");
      connection.Read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
      switch (mode_.load()) {
        case Mode::kRefuses:
        case Mode::kCloses:
          return;
        case Mode::kAnswers503:
          connection.Send("HTTP/1.1 503 Away\r\nContent-Length: 0\r\n\r\n");
          continue;
        case Mode::kRejects:
          connection.Send("HTTP/1.1 422 No\r\nContent-Length: 0\r\n\r\n");
          continue;
        case Mode::kRedirects:  // to a maintenance page
          connection.Send("HTTP/1.1 302 Later\r\nLocation: /away\r\nContent-Length: 0\r\n\r\n");
          continue;
        case Mode::kAnswers401:  // the token has expired
          connection.Send("HTTP/1.1 401 Who\r\nContent-Length: 0\r\n\r\n");
          continue;
        case Mode::kAnswers404:  // a proxy whose service is being replaced
          connection.Send("HTTP/1.1 404 Nothing\r\nContent-Length: 0\r\n\r\n");
          continue;
        case Mode::kHangs:
          connection.Read(1);  // until the caller gives up
          return;
        case Mode::kTakes:
          break;
      }
      const std::size_t key = head.find("Idempotency-Key: ") + 17;
      {
        const std::lock_guard lock(mutex_);
        ++taken_[head.substr(key, head.find('\r', key) - key)];
        ++windows_[std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count() /
                   kWindow];
      }
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
  }

  std::atomic<Mode> mode_{Mode::kTakes};
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, int> taken_;
  std::map<Millis, int> windows_;
  std::unique_ptr<test::TcpServer> server_;
};

class TargetAway : public testing::TestWithParam<Mode> {
 protected:
  TargetAway() : client_(weir_.Port("http")) {
    Post("/admin/rate-limit/config",
         R"({"configName":"pay","windowSize":"PT1S","maxPerWindow":)" + std::to_string(kCap) + "}");
    for (int i = 0; i < kEvents; ++i) {
      Post("/api/v1/slots", R"({"eventId":"e)" + std::to_string(i) +
                                R"(","configName":"pay","requestedTime":"2025-06-01T09:00:00Z"})");
    }
  }

  void Post(const std::string& path, const std::string& body) {
    const auto answer = client_.Post(path, body);
    ASSERT_EQ(answer.status / 100, 2) << answer.body;
  }

  std::unique_ptr<test::ChildProcess> Dispatch(const Bank& bank, const std::string& attempts) {
    return std::make_unique<test::ChildProcess>(std::vector<std::string>{
        test::Program(), "dispatch", "--url",
        "http://127.0.0.1:" + std::to_string(weir_.Port("http")), "--config", "pay", "--webhook",
        bank.url(), "--attempts", attempts, "--delivery-timeout", "0.8", "--lease", "3"});
  }

  int Number(const std::string& path, const std::string& field) {
    const std::string body = client_.Get(path).body;
    const std::size_t at = body.find("\"" + field + "\":");
    return at == std::string::npos ? -1 : std::stoi(body.substr(at + field.size() + 3));
  }
  int Backlog(const std::string& field) { return Number("/admin/rate-limit/backlog", field); }
  int MostAttempts() {
    int most = 0;
    for (int i = 0; i < kEvents; ++i) {
      most = std::max(most, Number("/api/v1/slots/e" + std::to_string(i), "attempts"));
    }
    return most;
  }

  bool AllDone() {
    for (int i = 0; i < kEvents; ++i) {
      const std::string body = client_.Get("/api/v1/slots/e" + std::to_string(i)).body;
      if (body.find(R"("state":"DONE")") == std::string::npos) return false;
    }
    return true;
  }

  test::TempDir dir_;
  test::WeirProcess weir_{{"serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off",
                           "--data", (dir_ / "data").string()}};
  test::HttpClient client_;
};

TEST_P(TargetAway, ForLongerThanTheAttemptsAndEverythingIsDelivered) {
  Bank bank(GetParam());
  auto dispatcher = Dispatch(bank, "3");
  ASSERT_TRUE(test::WaitUntil([&] { return MostAttempts() >= 5 || Backlog("failed") > 0; }))
      << dispatcher->error_output();
  EXPECT_EQ(Backlog("failed"), 0) << dispatcher->error_output();
  bank.Set(Mode::kTakes);
  EXPECT_TRUE(test::WaitUntil([&] { return bank.taken().size() == kEvents; }))
      << dispatcher->error_output();
  // On a busy machine an answer may come after the timeout, and then the event is sent again.
  EXPECT_TRUE(test::WaitUntil([&] { return AllDone(); })) << dispatcher->error_output();
  EXPECT_EQ(dispatcher->Terminate(), 0);
  EXPECT_EQ(Backlog("failed"), 0);
  EXPECT_LE(bank.fullest(), kCap);
}

using DeadLetters = TargetAway;

TEST_F(DeadLetters, AreRescheduledAllAtOnce) {
  Bank bank(Mode::kRejects);
  auto dispatcher = Dispatch(bank, "3");
  ASSERT_TRUE(test::WaitUntil([&] { return Backlog("failed") == kEvents; }))
      << dispatcher->error_output();
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {test::Program(), "slots"});
    words.insert(words.end(), {"--url", "http://127.0.0.1:" + std::to_string(weir_.Port("http"))});
    test::ChildProcess command(words);
    const int code = command.Wait().value_or(-1);
    return std::to_string(code) + " " + command.output() + command.error_output();
  };
  const std::string page = run({"due", "--config", "pay", "--state", "FAILED", "--limit", "4"});
  ASSERT_THAT(page, HasSubstr("there may be more: --after '"));
  const std::size_t cursor = page.find("--after '") + 9;
  EXPECT_THAT(run({"due", "--config", "pay", "--state", "FAILED", "--after",
                   page.substr(cursor, page.find('\'', cursor) - cursor)}),
              testing::Not(HasSubstr("there may be more")));
  EXPECT_THAT(run({"reschedule"}), HasSubstr("give an event, or --state FAILED and --config"));
  bank.Set(Mode::kTakes);
  EXPECT_EQ(run({"reschedule", "--state", "FAILED", "--config", "pay"}),
            "0 rescheduled 6, kept as they are 0\n");
  EXPECT_TRUE(test::WaitUntil([&] { return bank.taken().size() == kEvents; }));
  EXPECT_EQ(dispatcher->Terminate(), 0);
  EXPECT_EQ(Backlog("failed"), 0);
  EXPECT_LE(bank.fullest(), kCap);
  EXPECT_THAT(client_.Get("/admin/audit").body, HasSubstr("slot.reschedule"));
}

std::string NameOf(const testing::TestParamInfo<Mode>& way) {
  constexpr const char* kNames[] = {"takes",   "refuses",   "answers503", "closes",    "hangs",
                                    "rejects", "redirects", "answers401", "answers404"};
  return kNames[static_cast<int>(way.param)];
}

INSTANTIATE_TEST_SUITE_P(Ways, TargetAway,
                         testing::Values(Mode::kRefuses, Mode::kAnswers503, Mode::kCloses,
                                         Mode::kHangs, Mode::kRedirects, Mode::kAnswers401,
                                         Mode::kAnswers404),
                         NameOf);

}  // namespace
}  // namespace weir::slots
