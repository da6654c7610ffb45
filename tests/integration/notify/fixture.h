#pragma once

// The gateway as composed by the program, on real servers and with a manual clock. Calls go
// through the router, so the tests see what a client sees.

#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "notify/api/notify_api.h"
#include "notify/event.h"
#include "notify/kafka/publisher.h"
#include "notify/postgres/gateway.h"
#include "notify/redis/gateway.h"
#include "protocol/http/router.h"
#include "support/kafka_server.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"
#include "support/wait.h"
#include "weir/clock.h"

namespace weir::notify::test {

using http::Response;

/// 2026-01-02T03:04:05Z.
inline constexpr Nanos kStart = 1'767'323'045'000'000'000;

/// Started once per test program.
struct Servers {
  weir::test::PostgresServer postgres;
  weir::test::RedisServer redis;
  weir::test::KafkaServer kafka;
  /// Made once: a producer's first event takes a second.
  std::unique_ptr<notify::kafka::KafkaPublisher> publisher;

  explicit Servers(std::vector<std::string> kafka_settings = {})
      : kafka(std::move(kafka_settings)) {
    auto opened = notify::kafka::KafkaPublisher::Open(kafka.url());
    if (!opened.ok()) throw std::runtime_error(opened.error().message);
    publisher = std::move(*opened);
  }

  static std::string Trimmed(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }
  std::string Ask(const std::string& sql) { return Trimmed(postgres.Query(sql)); }
  std::string RowOf(const std::string& user) {
    return Ask(
        "SELECT rate_limit, time_window, current_count, last_refresh_time FROM rate_limit_store "
        "WHERE user_id = '" +
        user + "'");
  }
  std::string CountOf(const std::string& user) {
    return Ask("SELECT current_count FROM rate_limit_store WHERE user_id = '" + user + "'");
  }
  std::string Hash(const std::string& user, const std::string& field) {
    return Trimmed(redis.Command({"HGET", "RateLimiterCache:" + user, field}));
  }
  /// Holds the lock of a user's row this long, in another session; returns when it is locked.
  std::thread HoldRow(const std::string& user, const std::string& seconds) {
    std::thread holder([this, user, seconds] {
      postgres.Query("BEGIN; SELECT 1 FROM rate_limit_store WHERE user_id = '" + user +
                     "' FOR UPDATE; SELECT pg_sleep(" + seconds + "); COMMIT");
    });
    EXPECT_TRUE(weir::test::WaitUntil([&] {
      return Ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1";
    }));
    return holder;
  }
  std::string Redis(std::vector<std::string> words) {
    return Trimmed(redis.Command(std::move(words)));
  }
  std::int64_t Ttl(const std::string& user) {
    return std::stoll(redis.Command({"TTL", "RateLimiterCache:" + user}));
  }
  /// The events of a user on the topic, read by kcat, by message.
  std::vector<Event> EventsOf(const std::string& user) {
    std::vector<Event> events;
    for (const weir::test::KafkaMessage& message : kafka.Read(std::string(kTopic))) {
      Result<Event> event = DecodeEvent(message.payload);
      EXPECT_TRUE(event.ok()) << message.payload;
      if (event.ok() && event->user_id == user) events.push_back(std::move(*event));
    }
    return events;
  }
};

enum class Path { kPostgres, kRedis };

struct GatewayOptions {
  std::chrono::milliseconds lock_timeout{2000};
  std::size_t connections = 4;
  std::size_t max_unsynced = 200'000;
};

class Gateways {
 public:
  Gateways(Servers& servers, Path path, GatewayOptions options = {}) {
    postgres::Options pg;
    pg.url = servers.postgres.url();
    pg.lock_timeout = options.lock_timeout;
    pg.connections = options.connections;
    pg.statement_timeout = std::chrono::milliseconds(3000);
    postgres_.emplace(pg, *servers.publisher, clock);
    Gateway* gateway = &*postgres_;
    if (path == Path::kRedis) {
      redis::Options cache;
      cache.url = servers.redis.url();
      cache.max_unsynced = options.max_unsynced;
      auto redis =
          redis::RedisGateway::Open(cache, *postgres_, *postgres_, *servers.publisher, clock);
      if (!redis.ok()) throw std::runtime_error(redis.error().message);
      redis_ = std::move(*redis);
      gateway = redis_.get();
    }
    api_.emplace(*gateway, clock, notify::NotifyApi::Probes{});
    const auto open = [](http::Handler handler) { return handler; };
    api_->AddTo(router_, open, open);
    api_->channels().AddTo(router_, open);
  }

  std::future<Response> Start(std::string method, std::string path, std::string body,
                              std::string key = {}) {
    struct Flight {
      std::string method, path, body, key;
      http::Request request;
      std::promise<Response> response;
    };
    auto flight = std::make_shared<Flight>();
    flight->method = std::move(method);
    flight->path = std::move(path);
    flight->body = std::move(body);
    flight->key = std::move(key);
    flight->request.method = flight->method;
    flight->request.path = flight->path;
    flight->request.body = flight->body;
    if (!flight->key.empty()) flight->request.headers.push_back({"Idempotency-Key", flight->key});
    std::future<Response> future = flight->response.get_future();
    router_.Dispatch(flight->request,
                     [flight](Response given) { flight->response.set_value(std::move(given)); });
    return future;
  }

  Response Call(std::string method, std::string path, std::string body = {}, std::string key = {}) {
    return Wait(Start(std::move(method), std::move(path), std::move(body), std::move(key)));
  }
  static Response Wait(std::future<Response> future) {
    if (future.wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
      throw std::runtime_error("no response within 30 s");
    }
    return future.get();
  }

  Response Configure(const std::string& user, int limit, int minutes) {
    return Call("POST", "/api/config",
                "{\"userId\":\"" + user + "\",\"rateLimit\":" + std::to_string(limit) +
                    ",\"timeWindow\":" + std::to_string(minutes) + "}");
  }
  /// What undoing the first config of a user does.
  Status Remove(const std::string& user) {
    std::promise<Status> removed;
    api_->limits().restore(user, std::nullopt,
                           [&](Status status) { removed.set_value(std::move(status)); });
    return removed.get_future().get();
  }
  std::future<Response> StartSend(const std::string& user, const std::string& message = "hello",
                                  const std::string& key = {}) {
    return Start("POST", "/api/send",
                 "{\"userId\":\"" + user + "\",\"message\":\"" + message + "\"}", key);
  }
  Response Send(const std::string& user, const std::string& message = "hello",
                const std::string& key = {}) {
    return Wait(StartSend(user, message, key));
  }
  /// Makes `count` concurrent sends; returns how often each status occurred.
  std::map<int, int> SendMany(const std::string& user, int count) {
    std::vector<std::future<Response>> sends;
    for (int i = 0; i < count; ++i) sends.push_back(StartSend(user));
    std::map<int, int> statuses;
    for (std::future<Response>& send : sends) ++statuses[Wait(std::move(send)).status];
    return statuses;
  }

  /// Waits until Redis decides (or no longer decides).
  bool WaitForRedis(bool up) {
    return weir::test::WaitUntil([&] { return redis_->redis_up() == up; });
  }

  ManualClock clock{kStart};

 private:
  std::optional<postgres::PostgresGateway> postgres_;
  std::shared_ptr<redis::RedisGateway> redis_;
  std::optional<notify::NotifyApi> api_;
  http::Router router_;
};

inline std::string HeaderOf(const Response& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return {};
}

class ServersTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { servers_ = std::make_unique<Servers>(); }
  static void TearDownTestSuite() { servers_.reset(); }

  static inline std::unique_ptr<Servers> servers_;
};

}  // namespace weir::notify::test
