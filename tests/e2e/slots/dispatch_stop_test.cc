// `weir dispatch` is stopped while the answer to a claim is in flight: without care, the claimed
// events would have to wait for its lease to end.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>

#include "slots/time.h"
#include "support/child_process.h"
#include "support/paths.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace weir::slots {
namespace {

using testing::HasSubstr;

std::string Answer(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string OneEvent(Millis lease = 60'000, const std::string& payload = {}) {
  const std::string now = FormatInstant(MachineMillis());
  const std::string later = FormatInstant(MachineMillis() + lease);
  return R"({"now":")" + now +
         R"(","capped":false,"events":[{"eventId":"pay-1","configName":"pay",)" +
         R"("requestedTime":")" + now + R"(","scheduledTime":")" + now + R"(","windowStart":")" +
         now + R"(","attempt":1,"executeAt":")" + now + R"(","leaseUntil":")" + later +
         R"(","payload":")" + payload + "\"}]}";
}

TEST(DispatchStop, WhatAClaimBringsAfterTheSignalIsDeliveredAndReported) {
  std::promise<void> asked;
  std::promise<void> signalled;
  std::shared_future<void> go = signalled.get_future().share();
  std::atomic<int> claims = 0;
  std::atomic<bool> done = false;
  const test::TcpServer service([&](test::TcpConnection& connection) {
    const std::string head = connection.ReadThrough("\r\n\r\n");
    const std::string body =
        connection.Read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
    if (head.starts_with("POST /api/v1/slots/done")) {
      done = body.find("pay-1") != std::string::npos;
      connection.Send(Answer(R"({"results":[{"eventId":"pay-1","status":"DONE"}]})"));
      return;
    }
    if (++claims > 1)
      return connection.Send(
          Answer(R"({"now":"2030-01-01T00:00:00Z","capped":false,"events":[]})"));
    asked.set_value();
    go.wait();
    connection.Send(Answer(OneEvent()));
  });
  test::ChildProcess dispatcher({test::Program(), "dispatch", "--url",
                                 "http://127.0.0.1:" + std::to_string(service.port()), "--config",
                                 "pay"});
  ASSERT_EQ(asked.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  dispatcher.Signal(SIGTERM);
  // It polls for signals every tenth of a second, and has nothing else to do.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  signalled.set_value();
  EXPECT_EQ(dispatcher.Wait(std::chrono::seconds(15)), 0) << dispatcher.error_output();
  EXPECT_THAT(dispatcher.output(), HasSubstr(R"("eventId":"pay-1")"));
  EXPECT_TRUE(done);
}

// Who reads the events has stopped, but is there: that must not hold a dispatcher up until the
// lease ends.
TEST(DispatchStop, EndsWhenNobodyReadsOnAlthoughTheLeaseIsLong) {
  constexpr Millis kHour = 3'600'000;
  std::atomic<int> claims = 0;
  const test::TcpServer service([&](test::TcpConnection& connection) {
    const std::string head = connection.ReadThrough("\r\n\r\n");
    connection.Read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
    const bool claim = head.starts_with("POST /api/v1/slots/claim");
    if (claim) ++claims;
    connection.Send(Answer(claim ? OneEvent(kHour, std::string(16'000, 'x'))
                                 : R"({"results":[{"eventId":"pay-1","status":"DONE"}]})"));
  });
  const test::TempDir dir;
  const std::string pipe = (dir / "events").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  test::ChildProcess dispatcher(
      {"/bin/bash", "-c",
       "exec \"$0\" dispatch --url \"$1\" --config pay --lease 1h --delivery-timeout 1s > \"$2\"",
       test::Program(), "http://127.0.0.1:" + std::to_string(service.port()), pipe});
  // More than a pipe holds.
  ASSERT_TRUE(test::WaitUntil([&] { return claims > 8; }));
  dispatcher.Signal(SIGTERM);
  EXPECT_EQ(dispatcher.Wait(std::chrono::seconds(60)), 0) << dispatcher.error_output();
  close(reader);
}

// No retry helps with that.
TEST(DispatchStop, EndsWhenNobodyReadsTheEventsAnyMore) {
  const test::TcpServer service([&](test::TcpConnection& connection) {
    const std::string head = connection.ReadThrough("\r\n\r\n");
    connection.Read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
    const bool claim = head.starts_with("POST /api/v1/slots/claim");
    connection.Send(
        Answer(claim ? OneEvent() : R"({"results":[{"eventId":"pay-1","status":"DONE"}]})"));
  });
  test::ChildProcess pipeline(
      {"/bin/bash", "-c", "set -o pipefail; \"$0\" dispatch --url \"$1\" --config pay | true",
       test::Program(), "http://127.0.0.1:" + std::to_string(service.port())});
  EXPECT_EQ(pipeline.Wait(), 1);
  EXPECT_THAT(pipeline.error_output(), HasSubstr("weir: nobody reads standard output any more"));
}

}  // namespace
}  // namespace weir::slots
