#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "support/child_process.h"
#include "support/http_client.h"
#include "support/kafka_server.h"
#include "support/paths.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

// `weir dispatch` on a running service: to standard output and to Kafka. The webhook is in
// tests/fault/slots/dispatch_test.cc.

namespace weir::slots {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kEvents = 40;

class DispatchTargets : public testing::Test {
 protected:
  DispatchTargets() : client_(weir_.Port("http")) {
    Post("/admin/rate-limit/config",
         R"({"configName":"pay","windowSize":"PT1S","maxPerWindow":1000})", 201);
    std::string events;
    for (int i = 0; i < kEvents; ++i) {
      events += std::string(i > 0 ? "," : "") + R"({"eventId":"e)" + std::to_string(i) +
                R"(","configName":"pay","requestedTime":"2025-06-01T09:00:00Z","payload":"pay )" +
                std::to_string(i) + "\"}";
    }
    Post("/api/v1/slots/batch", R"({"events":[)" + events + "]}", 200);
    // What follows, starting Kafka, may take longer than a connection may be idle.
    client_.Disconnect();
  }

  void Post(const std::string& path, const std::string& body, int status) {
    const auto answer = client_.Post(path, body);
    ASSERT_EQ(answer.status, status) << answer.body;
  }

  std::unique_ptr<test::ChildProcess> Dispatch(std::vector<std::string> more) {
    std::vector<std::string> argv = {
        test::Program(), "dispatch",
        "--url",         "http://127.0.0.1:" + std::to_string(weir_.Port("http")),
        "--config",      "pay"};
    argv.insert(argv.end(), more.begin(), more.end());
    return std::make_unique<test::ChildProcess>(argv);
  }

  // Whether each is done: one that waits for its next attempt is neither due nor claimed.
  bool AllDone() {
    const std::string done = client_.Get("/api/v1/slots/due?config=pay&state=DONE&limit=1000").body;
    int count = 0;
    for (std::size_t at = 0; (at = done.find("\"eventId\"", at)) != std::string::npos; ++at)
      ++count;
    return count == kEvents;
  }

  int Backlog(const std::string& field) {
    const std::string body = client_.Get("/admin/rate-limit/backlog").body;
    const std::size_t at = body.find("\"" + field + "\":");
    return at == std::string::npos ? -1 : std::stoi(body.substr(at + field.size() + 3));
  }

  test::TempDir dir_;
  test::WeirProcess weir_{{"serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off",
                           "--data", (dir_ / "data").string()}};
  test::HttpClient client_;
};

TEST_F(DispatchTargets, StandardOutputHasALineForEachEvent) {
  auto dispatcher = Dispatch({});
  ASSERT_TRUE(test::WaitUntil([&] { return AllDone(); })) << dispatcher->error_output();
  EXPECT_EQ(dispatcher->Terminate(), 0);
  std::set<std::string> lines;
  std::string output = dispatcher->output();
  for (std::size_t end = 0; (end = output.find('\n')) != std::string::npos;) {
    lines.insert(output.substr(0, end));
    output.erase(0, end + 1);
  }
  EXPECT_EQ(lines.size(), static_cast<std::size_t>(kEvents));
  EXPECT_THAT(*lines.begin(), HasSubstr(R"("eventId":"e0","configName":"pay")"));
  EXPECT_THAT(*lines.begin(), HasSubstr(R"("attempt":1,"redelivered":false,"payload":"pay 0")"));
}

TEST_F(DispatchTargets, KafkaHasAMessageForEachEventUnderItsId) {
  const test::KafkaServer kafka;
  // A slower delivery may happen twice.
  auto dispatcher = Dispatch({"--kafka", kafka.url(), "--topic", "payments", "--delivery-timeout",
                              "60", "--lease", "120"});
  ASSERT_TRUE(test::WaitUntil([&] { return AllDone(); })) << dispatcher->error_output();
  EXPECT_EQ(dispatcher->Terminate(), 0);
  std::set<std::string> keys;
  for (const test::KafkaMessage& message : kafka.Read("payments")) {
    EXPECT_TRUE(keys.insert(message.key).second) << message.key << " came twice";
    EXPECT_EQ(message.payload, "pay " + message.key.substr(1));
    EXPECT_THAT(message.headers, HasSubstr("weir-config=pay"));
    EXPECT_THAT(message.headers, HasSubstr("weir-redelivered=false"));
  }
  EXPECT_EQ(keys.size(), static_cast<std::size_t>(kEvents));
}

TEST_F(DispatchTargets, AKafkaThatIsAwayLosesNothing) {
  test::KafkaServer kafka;
  kafka.Kill();
  auto dispatcher = Dispatch({"--kafka", kafka.url(), "--topic", "payments", "--lease", "15"});
  ASSERT_TRUE(dispatcher->WaitForError("the target is down", std::chrono::seconds(60)))
      << dispatcher->error_output();
  kafka.Start();
  ASSERT_TRUE(test::WaitUntil([&] { return AllDone(); })) << dispatcher->error_output();
  EXPECT_EQ(dispatcher->Terminate(), 0);
  std::set<std::string> keys;
  for (const test::KafkaMessage& message : kafka.Read("payments")) keys.insert(message.key);
  EXPECT_EQ(keys.size(), static_cast<std::size_t>(kEvents));
}

// A slow webhook: the queue in front of it takes longer than the leases.
TEST_F(DispatchTargets, WhatWaitsForASlowWebhookIsNotDeliveredAfterItsLease) {
  std::mutex mutex;
  std::map<std::string, int> times;
  const test::TcpServer bank([&](test::TcpConnection& connection) {
    for (;;) {
      const std::string head = connection.ReadThrough("\r\n\r\n");
      connection.Read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
      const std::size_t key = head.find("Idempotency-Key: ") + 17;
      {
        const std::lock_guard lock(mutex);
        ++times[head.substr(key, head.find('\r', key) - key)];
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
  });
  auto dispatcher =
      Dispatch({"--webhook", "http://127.0.0.1:" + std::to_string(bank.port()) + "/pay",
                "--workers", "1", "--lease", "4", "--delivery-timeout", "2"});
  ASSERT_TRUE(test::WaitUntil([&] { return AllDone(); })) << dispatcher->error_output();
  dispatcher->Terminate();
  const std::lock_guard lock(mutex);
  EXPECT_EQ(times.size(), static_cast<std::size_t>(kEvents));
  for (const auto& [event, count] : times) EXPECT_EQ(count, 1) << event;
}

// e3 is refused permanently, e5 fails every time, all others are accepted.
TEST_F(DispatchTargets, AWebhookHasAFewRequestsAtATimeAndItsRefusalsAreDeadLetters) {
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
  const test::TcpServer bank([&](test::TcpConnection& connection) {
    for (;;) {
      const std::string head = connection.ReadThrough("\r\n\r\n");
      connection.Read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
      most = std::max(most.load(), ++now);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      --now;
      const bool refused = head.find("Idempotency-Key: e3\r") != std::string::npos;
      const bool failing = head.find("Idempotency-Key: e5\r") != std::string::npos;
      connection.Send(std::string("HTTP/1.1 ") +
                      (refused   ? "422"
                       : failing ? "503"
                                 : "200") +
                      " X\r\nContent-Length: 0\r\n\r\n");
    }
  });
  auto dispatcher =
      Dispatch({"--webhook", "http://127.0.0.1:" + std::to_string(bank.port()) + "/pay",
                "--workers", "3", "--attempts", "2"});
  ASSERT_TRUE(test::WaitUntil([&] {
    return Backlog("failed") == 2 && Backlog("due") == 0 && Backlog("claimed") == 0;
  })) << dispatcher->error_output();
  EXPECT_EQ(dispatcher->Terminate(), 0);
  EXPECT_LE(most, 3);
  EXPECT_THAT(client_.Get("/api/v1/slots/e3").body,
              AllOf(HasSubstr(R"("state":"FAILED")"), HasSubstr(R"("attempts":1)"),
                    HasSubstr("the webhook answered 422")));
  EXPECT_THAT(client_.Get("/api/v1/slots/e5").body,
              AllOf(HasSubstr(R"("state":"FAILED")"), HasSubstr(R"("attempts":2)"),
                    HasSubstr("the webhook answered 503"), HasSubstr(R"("what":"failed")")));
  EXPECT_THAT(client_.Get("/api/v1/slots/due?config=pay&state=FAILED").body,
              AllOf(HasSubstr("\"e3\""), HasSubstr("\"e5\""), Not(HasSubstr("\"e4\""))));
  EXPECT_TRUE(test::WaitUntil([&] {
    return client_.Get("/metrics").body.find("weir_slots_dead_letters{config=\"pay\"} 2\n") !=
           std::string::npos;
  }));
}

TEST_F(DispatchTargets, MetricsAndAuditTellOfTheClaims) {
  auto dispatcher = Dispatch({});
  ASSERT_TRUE(test::WaitUntil([&] { return AllDone(); })) << dispatcher->error_output();
  dispatcher->Terminate();
  const auto metric = [&](const std::string& line) {
    return test::WaitUntil(
        [&] { return client_.Get("/metrics").body.find(line + "\n") != std::string::npos; });
  };
  EXPECT_TRUE(metric("weir_slots_answers_total{outcome=\"new\"} 40"));
  EXPECT_TRUE(metric("weir_slots_claimed_total 40"));
  EXPECT_TRUE(metric("weir_slots_finished_total{outcome=\"done\"} 40"));
  EXPECT_TRUE(metric("weir_slots_store_up 1"));
  EXPECT_TRUE(metric("weir_slots_due{config=\"pay\"} 0"));
  EXPECT_TRUE(metric("weir_slots_window_cap{config=\"pay\"} 1000"));
  EXPECT_TRUE(test::WaitUntil([&] {
    return client_.Get("/admin/audit").body.find("\"slot.claim\"") != std::string::npos;
  }));
}

double MetricOf(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

// e3 is refused permanently, e5 fails every time, all others are accepted.
TEST_F(DispatchTargets, TheDispatchersOwnMetricsTellWhatBecameOfItsClaims) {
  // A failure counts only if others were delivered since the event was last tried. So half of them
  // are accepted between the arrival of e5 and its first failure, and the others between that and
  // its second.
  constexpr int kHalf = kEvents / 2;
  std::atomic<int> others = 0;
  std::atomic<bool> arrived = false;
  std::atomic<bool> half = false;
  std::atomic<bool> retried = false;
  std::atomic<bool> all = false;
  const test::TcpServer bank([&](test::TcpConnection& connection) {
    for (;;) {
      const std::string head = connection.ReadThrough("\r\n\r\n");
      connection.Read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
      const bool refused = head.find("Idempotency-Key: e3\r") != std::string::npos;
      const bool failing = head.find("Idempotency-Key: e5\r") != std::string::npos;
      const bool again = failing && arrived.exchange(true);
      const std::atomic<bool>& turn = again               ? all
                                      : failing           ? half
                                      : ++others <= kHalf ? arrived
                                                          : retried;
      EXPECT_TRUE(test::WaitUntil([&] { return turn.load(); }));
      connection.Send(std::string("HTTP/1.1 ") +
                      (refused   ? "422"
                       : failing ? "503"
                                 : "200") +
                      " X\r\nContent-Length: 0\r\n\r\n");
    }
  });
  // Timeouts as long as the bank waits for its turn.
  auto dispatcher = Dispatch(
      {"--webhook", "http://127.0.0.1:" + std::to_string(bank.port()) + "/pay", "--workers", "64",
       "--attempts", "2", "--metrics", "0", "--delivery-timeout", "120", "--lease", "240"});
  const auto line = dispatcher->WaitForError("listening metrics 127.0.0.1:");
  ASSERT_TRUE(line) << dispatcher->error_output();
  test::HttpClient metrics(
      static_cast<std::uint16_t>(std::stoi(line->substr(line->rfind(':') + 1))));
  const auto deliveries = [&](const std::string& result) {
    return MetricOf(metrics.Get("/metrics").body,
                    "weir_dispatch_deliveries_total{result=\"" + result + "\"}");
  };
  // One of the half may be e3, which is refused.
  EXPECT_TRUE(test::WaitUntil([&] { return deliveries("delivered") >= kHalf - 1; }));
  half = true;
  EXPECT_TRUE(test::WaitUntil([&] { return deliveries("retried") == 1; }));
  retried = true;
  EXPECT_TRUE(test::WaitUntil([&] { return deliveries("delivered") == kEvents - 2; }));
  all = true;
  ASSERT_TRUE(test::WaitUntil([&] {
    return Backlog("failed") == 2 && Backlog("due") == 0 && Backlog("claimed") == 0;
  })) << dispatcher->error_output();
  ASSERT_TRUE(test::WaitUntil([&] {
    return MetricOf(metrics.Get("/metrics").body,
                    "weir_dispatch_deliveries_total{result=\"dead\"}") == 2;
  }));
  const std::string text = metrics.Get("/metrics").body;
  // Forty events; e5 was claimed twice, and its first failure was retried.
  EXPECT_EQ(MetricOf(text, "weir_dispatch_claimed_total"), kEvents + 1);
  EXPECT_EQ(MetricOf(text, "weir_dispatch_deliveries_total{result=\"delivered\"}"), kEvents - 2);
  EXPECT_EQ(MetricOf(text, "weir_dispatch_deliveries_total{result=\"retried\"}"), 1);
  EXPECT_EQ(MetricOf(text, "weir_dispatch_deliveries_total{result=\"left\"}"), 0);
  EXPECT_EQ(MetricOf(text, "weir_dispatch_lost_total"), 0);
  EXPECT_EQ(MetricOf(text, "weir_dispatch_late_seconds_count"), kEvents - 2);
  // They were due in 2025.
  EXPECT_EQ(MetricOf(text, "weir_dispatch_late_seconds_bucket{le=\"3600\"}"), 0);
  EXPECT_EQ(MetricOf(text, "weir_dispatch_target_up"), 1);
  EXPECT_EQ(MetricOf(text, "weir_dispatch_store_up"), 1);
  EXPECT_EQ(MetricOf(text, "weir_dispatch_capped{config=\"pay\"}"), 0);
  for (const char* state : {"waiting", "delivering", "reporting"}) {
    EXPECT_EQ(MetricOf(text, std::string("weir_dispatch_in_hand{state=\"") + state + "\"}"), 0);
  }
  EXPECT_THAT(text, Not(HasSubstr("weir_slots_"))) << "the service has those";
  EXPECT_EQ(dispatcher->Terminate(), 0);
}

TEST_F(DispatchTargets, MetricsTellThatTheTargetIsDown) {
  const test::TcpServer bank([](test::TcpConnection&) {});  // closes without answering
  auto dispatcher =
      Dispatch({"--webhook", "http://127.0.0.1:" + std::to_string(bank.port()) + "/pay",
                "--metrics", "127.0.0.1:0"});
  const auto line = dispatcher->WaitForError("listening metrics 127.0.0.1:");
  ASSERT_TRUE(line) << dispatcher->error_output();
  test::HttpClient metrics(
      static_cast<std::uint16_t>(std::stoi(line->substr(line->rfind(':') + 1))));
  EXPECT_TRUE(test::WaitUntil(
      [&] { return MetricOf(metrics.Get("/metrics").body, "weir_dispatch_target_up") == 0; }));
  EXPECT_TRUE(test::WaitUntil([&] {
    return MetricOf(metrics.Get("/metrics").body,
                    "weir_dispatch_deliveries_total{result=\"retried\"}") >= 5;
  }));
}

}  // namespace
}  // namespace weir::slots
