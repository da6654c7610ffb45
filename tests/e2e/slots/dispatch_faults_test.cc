// `weir dispatch` between a service and a bank that misbehave: what the bank has executed is
// reported, nothing is executed twice without a mark, and no config waits behind another's
// backlog. Service and bank are scripts.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "scripted_service.h"
#include "support/stopwatch.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace weir::slots {
namespace {

using namespace std::chrono_literals;

// More is queued for the bank than it handles in the time that a stop may take.
TEST(DispatchFaults, AStopReportsAllThatTheBankHasTaken) {
  std::atomic<bool> given = false;
  const Service service([&](const std::string&, int max) {
    std::vector<Service::Given> events;
    if (given.exchange(true)) return events;
    for (int i = 0; i < std::min(max, 400); ++i) events.push_back({"e" + std::to_string(i)});
    return events;
  });
  SlowBank bank(200ms);
  auto dispatcher =
      Dispatch(service, bank.url(),
               {"--config", "pay", "--workers", "1", "--delivery-timeout", "2", "--lease", "500"});
  ASSERT_TRUE(test::WaitUntil([&] { return bank.taken().size() >= 2; }))
      << dispatcher->error_output();
  dispatcher->Signal(SIGTERM);
  EXPECT_EQ(dispatcher->Wait(std::chrono::seconds(60)), 0) << dispatcher->error_output();
  EXPECT_LT(bank.taken().size(), 400U);
  EXPECT_EQ(service.done(), bank.taken());
}

// "a" has more than the bank can handle; "b" has one event.
TEST(DispatchFaults, ABacklogOfOneConfigDoesNotStarveAnother) {
  std::atomic<int> number = 0;
  std::atomic<bool> given = false;
  const Service service([&](const std::string& config, int max) {
    std::vector<Service::Given> events;
    if (config == "b" && number > 20 && !given.exchange(true)) events.push_back({"b"});
    for (int i = 0; config == "a" && i < max; ++i) {
      events.push_back({"a" + std::to_string(++number)});
    }
    return events;
  });
  SlowBank bank(50ms);
  auto dispatcher = Dispatch(
      service, bank.url(),
      {"--config", "a", "--config", "b", "--workers", "1", "--in-hand", "4", "--lease", "60"});
  EXPECT_TRUE(test::WaitUntil([&] { return service.done().contains("b"); }))
      << service.done().size() << " others were delivered";
  dispatcher->Terminate();
}

// Claims are made every 125 ms, half a second ahead: less often, and events come late.
TEST(DispatchFaults, AConfigThatDoesNotExistDoesNotDelayTheOthers) {
  std::atomic<int> claims = 0;
  const Service service([&](const std::string&, int) {
    ++claims;
    return std::vector<Service::Given>();
  });
  SlowBank bank(1ms);
  auto dispatcher =
      Dispatch(service, bank.url(), {"--config", "missing", "--config", "pay", "--config", "a"});
  ASSERT_TRUE(test::WaitUntil([&] { return claims >= 2; })) << dispatcher->error_output();
  const test::Stopwatch watch;
  EXPECT_TRUE(test::WaitUntil([&] { return claims >= 42; }));  // 20 rounds: 2.5 s
  EXPECT_LT(watch.elapsed(), 9s) << "20 pauses of half a second: 12.5 s";
  dispatcher->Terminate();
}

// The service refuses a whole set because of one event in it, for any reason.
TEST(DispatchFaults, AReportThatIsRefusedDoesNotHoldUpTheOthers) {
  std::atomic<bool> given = false;
  const Service service(
      [&](const std::string&, int) {
        std::vector<Service::Given> events;
        if (given.exchange(true)) return events;
        return std::vector<Service::Given>{{"e1"}, {"odd"}, {"e2"}, {"e3"}};
      },
      [](const std::string& body) { return body.find("\"odd\"") == std::string::npos ? 0 : 400; });
  SlowBank bank(1ms);
  auto dispatcher = Dispatch(service, bank.url(), {"--config", "pay", "--workers", "1"});
  EXPECT_TRUE(test::WaitUntil([&] { return service.done().size() == 3; }))
      << dispatcher->error_output();
  EXPECT_EQ(dispatcher->Terminate(), 0);
  EXPECT_THAT(service.done(), testing::ElementsAre("e1", "e2", "e3"));
}

// Its own answers say nothing about the events or the config.
TEST(DispatchFaults, WhatAProxyInBetweenAnswersIsTriedAgain) {
  std::atomic<bool> given = false;
  std::atomic<int> claims = 0;
  std::atomic<int> reports = 0;
  const auto page = [](const std::string& status) {
    return "HTTP/1.1 " + status + "\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>";
  };
  const Service service(
      [&](const std::string&, int) {
        std::vector<Service::Given> events;
        if (!given.exchange(true)) events = {{"e1"}, {"e2"}};
        return events;
      },
      {},
      [&](const std::string& head) -> std::string {
        if (head.starts_with("POST /api/v1/slots/claim")) {
          return ++claims == 1 ? page("404 Not Found") : "";
        }
        const int report = ++reports;
        return report <= 3 ? page("302 Found") : report == 4 ? page("404 Not Found") : "";
      });
  SlowBank bank(1ms);
  auto dispatcher = Dispatch(service, bank.url(), {"--config", "pay"});
  EXPECT_TRUE(test::WaitUntil([&] { return service.done().size() == 2; }));
  EXPECT_EQ(dispatcher->Terminate(), 0);
  EXPECT_THAT(dispatcher->error_output(), testing::HasSubstr("status 302"));
  EXPECT_THAT(dispatcher->error_output(),
              testing::Not(testing::AnyOf(testing::HasSubstr("does not exist"),
                                          testing::HasSubstr("delivered again"))));
}

// Each of them would take the whole timeout. The next dispatcher delivers them.
TEST(DispatchFaults, AStopWaitsForOneEventThatNobodyReadsNotForAll) {
  constexpr int kEvents = 40;
  std::atomic<bool> given = false;
  const Service service([&](const std::string&, int) {
    std::vector<Service::Given> events;
    if (given.exchange(true)) return events;
    for (int i = 0; i < kEvents; ++i) events.push_back({"e" + std::to_string(i)});
    return events;
  });
  const test::TempDir dir;
  const std::string pipe = (dir / "events").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_EQ(fcntl(reader, F_SETPIPE_SZ, 4096), 4096);
  test::ChildProcess dispatcher(
      {"/bin/bash", "-c",
       "exec \"$0\" dispatch --url \"$1\" --config pay --delivery-timeout 1s > \"$2\"",
       test::Program(), service.url(), pipe});
  ASSERT_TRUE(test::WaitUntil([&] { return !service.failed().empty(); }))
      << dispatcher.error_output();
  const test::Stopwatch watch;
  dispatcher.Signal(SIGTERM);
  EXPECT_EQ(dispatcher.Wait(std::chrono::seconds(60)), 0) << dispatcher.error_output();
  EXPECT_LT(watch.elapsed(), 8s) << "with a second for each event: 15 s";
  // The others are left as they are: their leases end.
  EXPECT_LT(service.done().size() + service.failed().size(), kEvents / 2);
  close(reader);
}

// The bank executes a payment and dies before it answers, on a reused connection. A resend
// must be marked as such.
TEST(DispatchFaults, ABankThatHangsUpIsNotSentTheSameAttemptAgain) {
  std::mutex mutex;
  std::map<std::string, int> seen;  // event and attempt
  const test::TcpServer bank([&](test::TcpConnection& connection) {
    for (int n = 1;; ++n) {
      const Request request = ReadRequest(connection);
      const std::string event = Between(request.head, "Idempotency-Key: ", "\r");
      const std::lock_guard lock(mutex);
      ++seen[event + " " + Between(request.head, "Weir-Attempt: ", "\r")];
      if (event == "e2" && n > 1) return;
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
  });
  std::atomic<int> claims = 0;
  const Service service([&](const std::string&, int) {
    std::vector<Service::Given> events;
    if (++claims == 1) events = {{"e1"}, {"e2"}};
    return events;
  });
  auto dispatcher = Dispatch(service, "http://127.0.0.1:" + std::to_string(bank.port()) + "/pay",
                             {"--config", "pay", "--workers", "1"});
  EXPECT_TRUE(test::WaitUntil([&] { return service.failed().contains("e2"); }))
      << dispatcher->error_output();
  EXPECT_EQ(dispatcher->Terminate(), 0);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(seen, (std::map<std::string, int>{{"e1 1", 1}, {"e2 1", 1}}));
}

}  // namespace
}  // namespace weir::slots
