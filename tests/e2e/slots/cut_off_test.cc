#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "slots/time.h"
#include "support/child_process.h"
#include "support/paths.h"
#include "support/stopwatch.h"
#include "support/tcp_server.h"
#include "support/wait.h"

// The bank closes while events wait for a slow target. A calendar has whole minutes, so this test
// plays the service itself: it returns a claim with an imminent cut-off.

namespace weir::slots {
namespace {

using testing::HasSubstr;

constexpr int kEvents = 8;
constexpr Millis kOpen = 1'500;
constexpr std::chrono::milliseconds kSlow{400};

Millis Now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string ReadBody(test::TcpConnection& connection, std::string& head) {
  head = connection.ReadThrough("\r\n\r\n");
  return connection.Read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
}

void Answer(test::TcpConnection& connection, const std::string& body) {
  connection.Send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
                  std::to_string(body.size()) + "\r\n\r\n" + body);
}

/// Plays the service. Thread-safe.
class Service {
 public:
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }
  Millis cut_off() const { return cut_off_; }
  /// Time since the claim, minus what the processes spent waiting for a processor.
  std::chrono::nanoseconds open_for() const { return watch_->elapsed(); }
  /// The bodies of requests to `path`.
  std::vector<std::string> told(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> bodies;
    for (const auto& [where, body] : told_) {
      if (where == path) bodies.push_back(body);
    }
    return bodies;
  }
  int ended() const { return ended_; }

 private:
  std::string Claim() {
    const std::string now = FormatInstant(Now());
    std::string events;
    if (cut_off_ == 0) {
      watch_.emplace();
      cut_off_ = Now() + kOpen;
      for (int i = 0; i < kEvents; ++i) {
        events.append(i > 0 ? "," : "").append(R"({"eventId":"e)").append(std::to_string(i));
        events.append(R"(","configName":"pay","requestedTime":")").append(now);
        events.append(R"(","scheduledTime":")").append(now);
        events.append(R"(","windowStart":")").append(now);
        events.append(R"(","executeAt":")").append(now);
        events.append(R"(","leaseUntil":")").append(FormatInstant(Now() + 30'000));
        events.append(R"(","attempt":1})");
      }
    }
    return R"({"now":")" + now + R"(","capped":false,"notAfter":")" + FormatInstant(cut_off_) +
           R"(","events":[)" + events + "]}";
  }

  std::string Told(const std::string& path, const std::string& body) {
    const std::lock_guard lock(mutex_);
    told_.emplace_back(path, body);
    std::string results;
    for (std::size_t at = 0; (at = body.find("\"eventId\":\"", at)) != std::string::npos; ++at) {
      ++ended_;
      results += std::string(results.empty() ? "" : ",") + R"({"eventId":")" +
                 body.substr(at + 11, body.find('"', at + 11) - at - 11) + R"(","status":"OK"})";
    }
    return R"({"results":[)" + results + "]}";
  }

  void Serve(test::TcpConnection& connection) {
    for (;;) {
      std::string head;
      const std::string body = ReadBody(connection, head);
      const std::size_t path = head.find(' ') + 1;
      const std::string where = head.substr(path, head.find(' ', path) - path);
      Answer(connection, where == "/api/v1/slots/claim" ? Claim() : Told(where, body));
    }
  }

  mutable std::mutex mutex_;
  std::vector<std::pair<std::string, std::string>> told_;
  std::optional<test::Stopwatch> watch_;  // made before the first event goes out
  std::atomic<Millis> cut_off_{0};
  std::atomic<int> ended_{0};
  test::TcpServer server_{[this](test::TcpConnection& connection) { Serve(connection); }};
};

TEST(CutOff, NothingIsStartedAfterItAndWhatWaitsIsGivenBack) {
  Service service;
  std::mutex mutex;
  std::vector<std::chrono::nanoseconds> started;
  const test::TcpServer bank([&](test::TcpConnection& connection) {
    for (;;) {
      std::string head;
      ReadBody(connection, head);
      {
        const std::lock_guard lock(mutex);
        started.push_back(service.open_for());
      }
      std::this_thread::sleep_for(kSlow);
      Answer(connection, "{}");
    }
  });
  test::ChildProcess dispatcher({test::Program(), "dispatch", "--url", service.url(), "--config",
                                 "pay", "--workers", "1", "--webhook",
                                 "http://127.0.0.1:" + std::to_string(bank.port())});
  EXPECT_TRUE(test::WaitUntil([&] { return service.ended() == kEvents; }))
      << dispatcher.error_output();
  dispatcher.Terminate();
  const std::lock_guard lock(mutex);
  EXPECT_GE(started.size(), 1U);
  EXPECT_LT(started.size(), static_cast<std::size_t>(kEvents));
  for (const auto at : started) EXPECT_LT(at, std::chrono::milliseconds(kOpen + 300));
  const std::vector<std::string> back = service.told("/api/v1/slots/failed");
  ASSERT_FALSE(back.empty());
  for (const std::string& body : back) {
    EXPECT_THAT(body, HasSubstr("\"retryTime\":\"" + FormatInstant(service.cut_off()) + "\""));
    EXPECT_THAT(body, HasSubstr(R"("counts":false)"));
  }
}

}  // namespace
}  // namespace weir::slots
