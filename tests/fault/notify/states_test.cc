// Every message that was accepted ends in exactly one final state, and the states add up to what
// was accepted: with a provider that fails, refuses and hangs up, senders that are killed, a broker
// that is restarted, and, embedded, a service that is killed. Counted in the database, at the API
// and at the provider.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/http_client.h"
#include "support/kafka_server.h"
#include "support/ports.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::IsEmpty;

/// The text of a string field; these tests have no escapes in theirs.
std::string FieldOf(const std::string& json, const std::string& name) {
  const std::string mark = "\"" + name + "\":\"";
  const std::size_t start = json.find(mark);
  if (start == std::string::npos) return {};
  return json.substr(start + mark.size(),
                     json.find('"', start + mark.size()) - start - mark.size());
}

/// A misbehaving webhook: of messages by their numbers, every seventh is refused permanently, every
/// third fails twice before it works, every fifth gets no answer the first time.
class MoodyWebhook {
 public:
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()) + "/sms"; }
  /// From now on it accepts everything.
  void CheerUp() { cheerful_ = true; }
  std::set<std::string> delivered() {
    const std::lock_guard lock(mutex_);
    return delivered_;
  }

 private:
  void Serve(TcpConnection& connection) {
    for (;;) {
      const std::string head = connection.ReadThrough("\r\n\r\n");
      const std::string body =
          connection.Read(std::stoul(head.substr(head.find("Content-Length: ") + 16)));
      const int status = Judge(FieldOf(body, "id"), FieldOf(body, "message"));
      if (status == 0) return;
      connection.Send("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: 0\r\n\r\n");
    }
  }
  /// 0: closes the connection without an answer.
  int Judge(const std::string& id, const std::string& message) {
    const int number = std::stoi(message.substr(message.rfind('-') + 1));
    const std::lock_guard lock(mutex_);
    const int attempt = ++attempts_[id];
    if (!cheerful_ && number % 7 == 0) return 422;
    if (!cheerful_ && number % 3 == 0 && attempt <= 2) return 503;
    if (!cheerful_ && number % 5 == 0 && attempt == 1) return 0;
    delivered_.insert(id);
    return 200;
  }

  std::atomic<bool> cheerful_ = false;
  std::mutex mutex_;
  std::map<std::string, int> attempts_;
  std::set<std::string> delivered_;
  TcpServer server_{[this](TcpConnection& connection) { Serve(connection); }};
};

/// Clients that send, and the ids of what was answered 200.
class Clients {
 public:
  explicit Clients(std::uint16_t port) {
    for (int client = 0; client < 3; ++client) {
      threads_.emplace_back([this, port, client] { Run(port, client); });
    }
  }
  ~Clients() { Stop(); }
  void Stop() {
    stopping_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  std::set<std::string> accepted() {
    const std::lock_guard lock(mutex_);
    return accepted_;
  }
  /// Sends without an answer, or with 503: whether these are on the topic is unknown.
  int unknown() const { return unknown_; }
  bool WaitForMore(std::size_t more) {
    const std::size_t goal = accepted().size() + more;
    return WaitUntil([&] { return accepted().size() >= goal; });
  }
  bool WaitForUnknown(int more) {
    const int goal = unknown_ + more;
    return WaitUntil([&] { return unknown_ >= goal; });
  }

 private:
  void Run(std::uint16_t port, int client) {
    HttpClient http(port, "127.0.0.1", seconds(20));
    for (int number = 0; !stopping_; ++number) {
      const std::string user = "user-" + std::to_string(number % 10);
      HttpResponse answer;
      try {
        answer = http.Post("/api/send", R"({"userId":")" + user + R"(","message":"m-)" +
                                            std::to_string(client) + "-" + std::to_string(number) +
                                            "\"}");
      } catch (const std::exception&) {
        http.Disconnect();
      }
      if (answer.status == 200) {
        const std::lock_guard lock(mutex_);
        EXPECT_TRUE(accepted_.insert(FieldOf(answer.body, "eventId")).second);
      } else {
        ++unknown_;
      }
      // Few enough for the provider to keep up on a slow machine.
      std::this_thread::sleep_for(milliseconds(answer.status == 200 ? 10 : 50));
    }
  }

  std::atomic<bool> stopping_ = false;
  std::atomic<int> unknown_ = 0;
  std::mutex mutex_;
  std::set<std::string> accepted_;
  std::vector<std::thread> threads_;
};

void Configure(std::uint16_t port) {
  HttpClient client(port);
  for (int user = 0; user < 10; ++user) {
    const HttpResponse made =
        client.Post("/api/config", R"({"userId":"user-)" + std::to_string(user) +
                                       R"(","rateLimit":1000000,"timeWindow":60})");
    if (made.status != 200) throw std::runtime_error("cannot configure: " + made.body);
  }
}

/// All messages in a state, from the API, page by page.
std::set<std::string> IdsIn(std::uint16_t port, const std::string& state) {
  HttpClient client(port);
  std::set<std::string> ids;
  std::string after;
  do {
    const HttpResponse page = client.Get("/api/messages?limit=500&state=" + state + after);
    if (page.status != 200) throw std::runtime_error(page.body);
    for (std::size_t at = 0; (at = page.body.find("{\"eventId\":", at)) != std::string::npos;
         ++at) {
      EXPECT_TRUE(ids.insert(FieldOf(page.body.substr(at, 200), "eventId")).second);
    }
    const std::string next = FieldOf(page.body, "next");
    after = next.empty() ? "" : "&after=" + next;
  } while (!after.empty());
  return ids;
}

/// Waits until nothing is under way, and compares. Returns the ids of the dead letters.
std::set<std::string> Judge(std::uint16_t port, Clients& clients, MoodyWebhook& webhook) {
  const std::set<std::string> accepted = clients.accepted();
  std::map<std::string, std::set<std::string>> ids;
  EXPECT_TRUE(WaitUntil([&] {
    if (!IdsIn(port, "QUEUED").empty() || !IdsIn(port, "FAILED").empty()) return false;
    std::size_t known = 0;
    for (const char* state : {"SENT", "DEAD"}) ids[state] = IdsIn(port, state);
    for (const std::string& id : accepted) {
      known += ids["SENT"].contains(id) || ids["DEAD"].contains(id) ? 1 : 0;
    }
    return known == accepted.size();
  })) << ids["SENT"].size()
      << " sent, " << ids["DEAD"].size() << " dead of " << accepted.size();
  for (const std::string& id : accepted) {
    EXPECT_EQ(ids["SENT"].count(id) + ids["DEAD"].count(id), 1U) << id;
  }
  EXPECT_THAT(IdsIn(port, "DROPPED"), IsEmpty());
  const std::size_t all = ids["SENT"].size() + ids["DEAD"].size();
  EXPECT_GE(all, accepted.size());
  EXPECT_LE(all, accepted.size() + static_cast<std::size_t>(clients.unknown()));
  EXPECT_EQ(ids["SENT"], webhook.delivered()) << "what is said to be sent, and what has arrived";
  EXPECT_FALSE(ids["DEAD"].empty());
  return ids["DEAD"];
}

/// Replays all dead letters; the provider accepts them now.
void ReplayAll(std::uint16_t port, Clients& clients, MoodyWebhook& webhook) {
  webhook.CheerUp();
  const HttpResponse replayed =
      HttpClient(port).Post("/admin/notify/dead/replay", R"({"all":true})");
  EXPECT_EQ(replayed.status, 200) << replayed.body;
  EXPECT_TRUE(WaitUntil([&] {
    const std::set<std::string> sent = IdsIn(port, "SENT");
    const std::set<std::string> accepted = clients.accepted();
    return std::includes(sent.begin(), sent.end(), accepted.begin(), accepted.end());
  }));
  EXPECT_THAT(IdsIn(port, "DEAD"), IsEmpty());
  EXPECT_EQ(IdsIn(port, "SENT"), webhook.delivered());
}

class MessageStates : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<WeirProcess> Sender(const std::string& name) {
    return std::make_unique<WeirProcess>(std::vector<std::string>{
        "sender", "--broker", kafka_.url(), "--data", dir_ / name, "--store", postgres_.url(),
        "--webhook", webhook_.url(), "--timeout", "2"});
  }

  const TempDir dir_;
  PostgresServer postgres_;
  KafkaServer kafka_;
  MoodyWebhook webhook_;
};

TEST_P(MessageStates, AddUpThroughProviderFailuresSenderKillsAndABrokerRestart) {
  std::unique_ptr<RedisServer> redis;
  std::vector<std::string> args = {
      "serve",     "--http", "127.0.0.1:0", "--grpc",         "off",           "--resp",
      "off",       "--data", dir_ / "data", "--notify-store", postgres_.url(), "--notify-broker",
      kafka_.url()};
  if (GetParam()) {
    redis = std::make_unique<RedisServer>();
    args.insert(args.end(), {"--notify-cache", redis->url()});
  }
  WeirProcess gateway(args);
  const std::uint16_t port = gateway.Port("http");
  Configure(port);
  auto one = Sender("one");
  Clients clients(port);
  ASSERT_TRUE(clients.WaitForMore(60)) << gateway.process().error_output();
  // It has claimed some when it is killed.
  ASSERT_TRUE(WaitUntil([&] { return webhook_.delivered().size() > 10; }))
      << one->process().error_output();
  one->process().Kill();
  one = Sender("one");
  auto two = Sender("two");
  kafka_.Kill();
  ASSERT_TRUE(clients.WaitForUnknown(3));
  kafka_.Start();
  ASSERT_TRUE(clients.WaitForMore(60)) << gateway.process().error_output();
  two->process().Kill();
  ASSERT_TRUE(clients.WaitForMore(30));
  clients.Stop();
  one->process().Kill();
  one = Sender("three");  // knows of earlier deliveries only from the database
  const std::set<std::string> dead = Judge(port, clients, webhook_);
  EXPECT_EQ(postgres_.Query("SELECT count(*) FROM notify_dead_letter"),
            std::to_string(dead.size()));
  EXPECT_EQ(postgres_.Query("SELECT count(*) FROM notify_message m FULL JOIN notify_dead_letter d "
                            "USING (event_id) WHERE (m.state = 3) IS DISTINCT FROM "
                            "(d.event_id IS NOT NULL)"),
            "0");
  ReplayAll(port, clients, webhook_);
}

INSTANTIATE_TEST_SUITE_P(Paths, MessageStates, testing::Bool(),
                         [](const auto& path) { return path.param ? "Redis" : "Postgres"; });

TEST(EmbeddedMessageStates, AddUpThroughProviderFailuresAndKillsOfTheService) {
  const TempDir dir;
  MoodyWebhook webhook;
  const std::uint16_t port = FreePort();
  const auto start = [&] {
    auto service = std::make_unique<WeirProcess>(
        std::vector<std::string>{"serve", "--http", "127.0.0.1:" + std::to_string(port), "--grpc",
                                 "off", "--resp", "off", "--data", dir / "data"},
        SpawnOptions{.env = {"WEIR_NOTIFY_PROVIDERS=" + webhook.url()}});
    EXPECT_EQ(service->Port("http"), port);
    return service;
  };
  auto service = start();
  Configure(port);
  Clients clients(port);
  for (int kill = 0; kill < 3; ++kill) {
    ASSERT_TRUE(clients.WaitForMore(40)) << service->process().error_output();
    service->process().Kill();
    service = start();
  }
  clients.Stop();
  Judge(port, clients, webhook);
  ReplayAll(port, clients, webhook);
}

}  // namespace
}  // namespace weir::test
