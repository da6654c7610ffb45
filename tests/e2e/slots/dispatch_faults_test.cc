// `weir dispatch` between a service and a bank that misbehave: what the bank has executed is
// reported, nothing is executed twice without a mark, and nobody waits behind somebody else's
// backlog. Service and bank are scripts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

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

#include "slots/time.h"
#include "support/child_process.h"
#include "support/paths.h"
#include "support/tcp_server.h"
#include "support/wait.h"

namespace weir::slots {
namespace {

using namespace std::chrono_literals;

std::string Answer(const std::string& body, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::string Between(const std::string& text, const std::string& before, const std::string& end) {
  const std::size_t from = text.find(before);
  if (from == std::string::npos) return {};
  return text.substr(from + before.size(),
                     text.find(end, from + before.size()) - from - before.size());
}

struct Request {
  std::string head;
  std::string body;
};

Request ReadRequest(test::TcpConnection& connection) {
  std::string head = connection.ReadThrough("\r\n\r\n");
  std::string body = connection.Read(std::stoul(Between(head, "Content-Length: ", "\r")));
  return {std::move(head), std::move(body)};
}

std::string EventJson(const std::string& id, const std::string& config, int attempt) {
  const std::string now = FormatInstant(MachineMillis());
  const std::string later = FormatInstant(MachineMillis() + 600'000);
  return R"({"eventId":")" + id + R"(","configName":")" + config + R"(","requestedTime":")" + now +
         R"(","scheduledTime":")" + now + R"(","windowStart":")" + now + R"(","attempt":)" +
         std::to_string(attempt) + R"(,"executeAt":")" + now + R"(","leaseUntil":")" + later +
         "\"}";
}

/// A service that hands out what `claim` makes and notes what it is told. Thread-safe.
class Service {
 public:
  struct Given {
    std::string id;
    int attempt = 1;
  };
  using Claim = std::function<std::vector<Given>(const std::string& config, int max)>;
  /// Whether a report is refused, with 400.
  using Refuse = std::function<bool(const std::string& body)>;

  explicit Service(Claim claim, Refuse refuse = {})
      : claim_(std::move(claim)),
        refuse_(std::move(refuse)),
        server_([this](auto& connection) { Serve(connection); }) {}

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }
  std::set<std::string> done() const {
    const std::lock_guard lock(mutex_);
    return done_;
  }
  std::set<std::string> failed() const {
    const std::lock_guard lock(mutex_);
    return failed_;
  }

 private:
  void Serve(test::TcpConnection& connection) {
    const Request request = ReadRequest(connection);
    if (request.head.starts_with("POST /api/v1/slots/claim")) {
      if (request.body.find(R"("config":"missing")") != std::string::npos) {
        return connection.Send(Answer(R"({"status":404,"message":"no"})", "404 Not Found"));
      }
      return connection.Send(Answer(ClaimBody(request.body)));
    }
    if (refuse_ && refuse_(request.body)) {
      return connection.Send(Answer(R"({"status":400,"message":"no"})", "400 Bad Request"));
    }
    connection.Send(
        Answer(Note(request.body, request.head.starts_with("POST /api/v1/slots/done"))));
  }

  std::string ClaimBody(const std::string& body) {
    const std::string config = Between(body, R"("config":")", "\"");
    std::string events;
    for (const Given& one : claim_(config, std::stoi(Between(body, R"("max":)", ",")))) {
      events += (events.empty() ? "" : ",") + EventJson(one.id, config, one.attempt);
    }
    return R"({"now":")" + FormatInstant(MachineMillis()) + R"(","capped":false,"events":[)" +
           events + "]}";
  }

  std::string Note(const std::string& body, bool ok) {
    const std::lock_guard lock(mutex_);
    std::string results;
    for (std::size_t at = 0; (at = body.find(R"("eventId":")", at)) != std::string::npos; ++at) {
      const std::string id = Between(body.substr(at), R"("eventId":")", "\"");
      (ok ? done_ : failed_).insert(id);
      results += (results.empty() ? "" : ",") + (R"({"eventId":")" + id + R"(","status":")") +
                 (ok ? "DONE" : "FAILED") + "\"}";
    }
    return R"({"results":[)" + results + "]}";
  }

  const Claim claim_;
  const Refuse refuse_;
  mutable std::mutex mutex_;
  std::set<std::string> done_;
  std::set<std::string> failed_;
  test::TcpServer server_;  // last: it uses the others
};

/// A bank that takes its time and everything. Thread-safe.
class SlowBank {
 public:
  explicit SlowBank(std::chrono::milliseconds time)
      : server_([this, time](test::TcpConnection& connection) {
          for (;;) {
            const Request request = ReadRequest(connection);
            {
              const std::lock_guard lock(mutex_);
              taken_.insert(Between(request.head, "Idempotency-Key: ", "\r"));
            }
            std::this_thread::sleep_for(time);
            connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
          }
        }) {}

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()) + "/pay"; }
  std::set<std::string> taken() const {
    const std::lock_guard lock(mutex_);
    return taken_;
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> taken_;
  test::TcpServer server_;
};

std::unique_ptr<test::ChildProcess> Dispatch(const Service& service, const std::string& bank,
                                             std::vector<std::string> more) {
  std::vector<std::string> argv = {test::Program(), "dispatch",  "--url",
                                   service.url(),   "--webhook", bank};
  argv.insert(argv.end(), more.begin(), more.end());
  return std::make_unique<test::ChildProcess>(argv);
}

// More waits for the bank than it takes in the time that a stop may take.
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

// "a" has more than the bank can take; "b" has one event.
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
  EXPECT_TRUE(test::WaitUntil([&] { return service.done().contains("b"); }, 20s))
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
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(test::WaitUntil([&] { return claims >= 42; }));  // 20 rounds: 2.5 s
  EXPECT_LT(std::chrono::steady_clock::now() - began, 9s) << "20 pauses of half a second: 12.5 s";
  dispatcher->Terminate();
}

// The service refuses a whole set because of one event in it, whatever the reason.
TEST(DispatchFaults, AReportThatIsRefusedDoesNotHoldUpTheOthers) {
  std::atomic<bool> given = false;
  const Service service(
      [&](const std::string&, int) {
        std::vector<Service::Given> events;
        if (given.exchange(true)) return events;
        return std::vector<Service::Given>{{"e1"}, {"odd"}, {"e2"}, {"e3"}};
      },
      [](const std::string& body) { return body.find("\"odd\"") != std::string::npos; });
  SlowBank bank(1ms);
  auto dispatcher = Dispatch(service, bank.url(), {"--config", "pay", "--workers", "1"});
  EXPECT_TRUE(test::WaitUntil([&] { return service.done().size() == 3; }, 20s))
      << dispatcher->error_output();
  EXPECT_EQ(dispatcher->Terminate(), 0);
  EXPECT_THAT(service.done(), testing::ElementsAre("e1", "e2", "e3"));
}

// It executes a payment and dies before it answers, on a connection that was used before. Whoever
// sends it again must say so.
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
  EXPECT_TRUE(test::WaitUntil([&] { return service.failed().contains("e2"); }, 20s))
      << dispatcher->error_output();
  EXPECT_EQ(dispatcher->Terminate(), 0);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(seen, (std::map<std::string, int>{{"e1 1", 1}, {"e2 1", 1}}));
}

}  // namespace
}  // namespace weir::slots
