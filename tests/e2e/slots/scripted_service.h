#pragma once

// The two sides of `weir dispatch` in tests: a service and a bank that are scripts.

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "slots/time.h"
#include "support/child_process.h"
#include "support/paths.h"
#include "support/tcp_server.h"

namespace weir::slots {

inline std::string Answer(const std::string& body, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

inline std::string Between(const std::string& text, const std::string& before,
                           const std::string& end) {
  const std::size_t from = text.find(before);
  if (from == std::string::npos) return {};
  return text.substr(from + before.size(),
                     text.find(end, from + before.size()) - from - before.size());
}

struct Request {
  std::string head;
  std::string body;
};

inline Request ReadRequest(test::TcpConnection& connection) {
  std::string head = connection.ReadThrough("\r\n\r\n");
  std::string body = connection.Read(std::stoul(Between(head, "Content-Length: ", "\r")));
  return {std::move(head), std::move(body)};
}

inline std::string EventJson(const std::string& id, const std::string& config, int attempt) {
  const std::string now = FormatInstant(MachineMillis());
  const std::string later = FormatInstant(MachineMillis() + 600'000);
  return R"({"eventId":")" + id + R"(","configName":")" + config + R"(","requestedTime":")" + now +
         R"(","scheduledTime":")" + now + R"(","windowStart":")" + now + R"(","attempt":)" +
         std::to_string(attempt) + R"(,"executeAt":")" + now + R"(","leaseUntil":")" + later +
         "\"}";
}

/// A service that returns what `claim` makes and records its requests. Thread-safe.
class Service {
 public:
  struct Given {
    std::string id;
    int attempt = 1;
  };
  using Claim = std::function<std::vector<Given>(const std::string& config, int max)>;
  /// The status with which a report is refused; 0: it is accepted.
  using Refuse = std::function<int(const std::string& body)>;

  /// What a proxy in between answers instead of the service; empty: nothing.
  using Proxy = std::function<std::string(const std::string& head)>;

  explicit Service(Claim claim, Refuse refuse = {}, Proxy proxy = {})
      : claim_(std::move(claim)),
        refuse_(std::move(refuse)),
        proxy_(std::move(proxy)),
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
    if (const std::string other = proxy_ ? proxy_(request.head) : ""; !other.empty()) {
      return connection.Send(other);
    }
    if (request.head.starts_with("POST /api/v1/slots/claim")) {
      if (request.body.find(R"("config":"missing")") != std::string::npos) {
        return connection.Send(Answer(R"({"status":404,"message":"no"})", "404 Not Found"));
      }
      return connection.Send(Answer(ClaimBody(request.body)));
    }
    if (const int status = refuse_ ? refuse_(request.body) : 0; status != 0) {
      return connection.Send(Answer(R"({"message":"no"})", std::to_string(status) + " No"));
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
  const Proxy proxy_;
  mutable std::mutex mutex_;
  std::set<std::string> done_;
  std::set<std::string> failed_;
  test::TcpServer server_;  // last: it uses the others
};

/// A bank that is slow and accepts everything. Thread-safe.
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

inline std::unique_ptr<test::ChildProcess> Dispatch(const Service& service, const std::string& bank,
                                                    std::vector<std::string> more) {
  std::vector<std::string> argv = {test::Program(), "dispatch",  "--url",
                                   service.url(),   "--webhook", bank};
  argv.insert(argv.end(), more.begin(), more.end());
  return std::make_unique<test::ChildProcess>(argv);
}

}  // namespace weir::slots
