#include "plain_way.h"

#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <librdkafka/rdkafka.h>
#include <sqlite3.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>

namespace weir::bench {
namespace {

constexpr int kUsers = 1000;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "plain way: %s\n", what);
  std::exit(1);
}

std::string User(long number) { return "user-" + std::to_string(number * 7919 % kUsers); }

std::string Payload(const std::string& user, long number) {
  return R"({"id":"00000000-0000-4000-8000-)" + std::to_string(number) + R"(","userId":")" + user +
         R"(","message":"your code is )" + std::to_string(number) +
         R"(","timestamp":"2026-01-02T03:04:05.678Z"})";
}

/// A producer that waits until each message is acknowledged.
class Producer {
 public:
  explicit Producer(const std::string& brokers) {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    std::array<char, 256> why{};
    for (const auto& [name, value] :
         {std::pair<const char*, const char*>{"bootstrap.servers", brokers.c_str()},
          {"enable.idempotence", "true"},
          {"acks", "all"},
          {"linger.ms", "0"}}) {
      if (rd_kafka_conf_set(conf, name, value, why.data(), why.size()) != RD_KAFKA_CONF_OK) {
        Fail(why.data());
      }
    }
    rd_kafka_conf_set_dr_msg_cb(conf, [](rd_kafka_t*, const rd_kafka_message_t* message, void*) {
      if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) Fail(rd_kafka_err2str(message->err));
    });
    client_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why.data(), why.size());
    if (client_ == nullptr) Fail(why.data());
    topic_ = rd_kafka_topic_new(client_, "plain", nullptr);
    if (topic_ == nullptr) Fail(rd_kafka_err2str(rd_kafka_last_error()));
  }
  ~Producer() {
    rd_kafka_topic_destroy(topic_);
    rd_kafka_destroy(client_);
  }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  void Publish(const std::string& key, const std::string& payload) {
    const int refused = rd_kafka_produce(topic_, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY,
                                         const_cast<char*>(payload.data()), payload.size(),
                                         key.data(), key.size(), nullptr);
    if (refused != 0) Fail(rd_kafka_err2str(rd_kafka_last_error()));
    while (rd_kafka_outq_len(client_) > 0) rd_kafka_poll(client_, 1000);
  }

 private:
  rd_kafka_t* client_;
  rd_kafka_topic_t* topic_ = nullptr;
};

/// Direct use of libpq.
class Database {
 public:
  explicit Database(const std::string& url) : connection_(PQconnectdb(url.c_str()), &PQfinish) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) Fail(PQerrorMessage(connection_.get()));
    Run("SET client_min_messages = warning; DROP TABLE IF EXISTS plain_user;"
        "CREATE TABLE plain_user(user_id text PRIMARY KEY, rate_limit int NOT NULL, time_window "
        "int "
        "NOT NULL, current_count int NOT NULL, last_refresh_time timestamp NOT NULL);"
        "INSERT INTO plain_user SELECT 'user-' || n, 1000000, 60, 0, now() "
        "FROM generate_series(0, 999) n");
    Prepare("lock", "SELECT * FROM plain_user WHERE user_id = $1 FOR UPDATE");
    Prepare("count", "UPDATE plain_user SET current_count = current_count + 1 WHERE user_id = $1");
  }

  void Run(const char* sql) { Check(PQexec(connection_.get(), sql)); }
  void Ask(const char* name, const std::string& user) {
    const char* value = user.c_str();
    Check(PQexecPrepared(connection_.get(), name, 1, &value, nullptr, nullptr, 0));
  }

 private:
  void Prepare(const char* name, const char* sql) {
    Check(PQprepare(connection_.get(), name, sql, 0, nullptr));
  }
  void Check(PGresult* result) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> owned(result, &PQclear);
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
      Fail(PQerrorMessage(connection_.get()));
    }
  }

  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

double Repeat(double seconds, const std::function<void(long)>& send) {
  using Clock = std::chrono::steady_clock;
  for (long i = 0; i < 100; ++i) send(i);  // warm-up
  const auto begun = Clock::now();
  long done = 100;
  const auto elapsed = [&begun] {
    return std::chrono::duration<double>(Clock::now() - begun).count();
  };
  while (elapsed() < seconds) send(done++);
  return static_cast<double>(done - 100) / elapsed();
}

}  // namespace

double PlainPostgres(const std::string& postgres, const std::string& brokers, double seconds) {
  Database database(postgres);
  Producer producer(brokers);
  return Repeat(seconds, [&](long number) {
    const std::string user = User(number);
    database.Run("BEGIN");
    database.Ask("lock", user);
    producer.Publish(user, Payload(user, number));
    database.Ask("count", user);
    database.Run("COMMIT");
  });
}

double PlainRedis(const std::string& postgres, int redis_port, const std::string& brokers,
                  double seconds) {
  constexpr const char* kScript =
      "if redis.call('HGET', KEYS[1], 'currentCount') < redis.call('HGET', KEYS[1], 'rateLimit') "
      "then return redis.call('HINCRBY', KEYS[1], 'currentCount', 1) else return 0 end";
  const auto run = [](redisContext* redis, const char* format, auto... values) {
    auto* reply = static_cast<redisReply*>(redisCommand(redis, format, values...));
    if (reply == nullptr || reply->type == REDIS_REPLY_ERROR) Fail("redis");
    freeReplyObject(reply);
  };
  Database database(postgres);
  Producer producer(brokers);
  const std::unique_ptr<redisContext, decltype(&redisFree)> redis(
      redisConnect("127.0.0.1", redis_port), &redisFree);
  if (!redis || redis->err != 0) Fail("cannot connect to redis");
  for (long i = 0; i < kUsers; ++i) {
    run(redis.get(), "HSET plain:%s rateLimit 9999999 currentCount 0", User(i).c_str());
  }
  return Repeat(seconds, [&](long number) {
    const std::string user = User(number);
    run(redis.get(), "EVAL %s 1 plain:%s", kScript, user.c_str());
    producer.Publish(user, Payload(user, number));
    database.Ask("count", user);
  });
}

double PlainSqlite(const std::string& file, double seconds) {
  sqlite3* opened = nullptr;
  if (sqlite3_open(file.c_str(), &opened) != SQLITE_OK) Fail("cannot open the SQLite file");
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database(opened, &sqlite3_close);
  const auto run = [&database](const std::string& sql) {
    char* why = nullptr;
    if (sqlite3_exec(database.get(), sql.c_str(), nullptr, nullptr, &why) != SQLITE_OK) Fail(why);
  };
  run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
      "CREATE TABLE user(id TEXT PRIMARY KEY, rate_limit INT, current_count INT);"
      "CREATE TABLE outbox(id INTEGER PRIMARY KEY, event TEXT)");
  for (long i = 0; i < kUsers; ++i) run("INSERT INTO user VALUES('" + User(i) + "', 1000000, 0)");
  return Repeat(seconds, [&](long number) {
    const std::string user = User(number);
    run("BEGIN IMMEDIATE");
    run("SELECT * FROM user WHERE id = '" + user + "'");
    run("UPDATE user SET current_count = current_count + 1 WHERE id = '" + user + "'");
    run("INSERT INTO outbox(event) VALUES('" + Payload(user, number) + "')");
    run("COMMIT");
  });
}

}  // namespace weir::bench
