// The endpoints on a store that answers later, or never: the order of answers, connections that
// close while the store decides, and the end of the service with checks under way.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "limiter/policy_limiter.h"
#include "net/reactor_pool.h"
#include "policy/policy_set.h"
#include "protocol/http/router.h"
#include "service/http_exchange.h"
#include "service/http_service.h"
#include "service/resp_door.h"
#include "store/guard/guarded_store.h"
#include "store/memory/memory_store.h"
#include "support/http_client.h"
#include "support/stopwatch.h"
#include "support/tcp_connection.h"
#include "support/wait.h"

namespace weir::service {
namespace {

using namespace std::chrono_literals;
using test::HttpClient;
using test::TcpConnection;
using test::WaitUntil;

/// Answers after a while; once `silent` is set, never, and not after its destruction.
class SlowStore final : public store::Store {
 public:
  SlowStore(boost::asio::io_context& io, Engine& engine, std::chrono::milliseconds delay,
            const std::atomic<bool>& silent)
      : io_(io),
        memory_(std::make_shared<store::memory::MemoryStore>(engine)),
        delay_(delay),
        silent_(silent) {}

  void Apply(std::span<store::Application> batch, store::Done done) override {
    if (silent_) return;
    auto timer = std::make_shared<boost::asio::steady_timer>(io_, delay_);
    timer->async_wait(
        [memory = std::weak_ptr(memory_), batch, done = std::move(done), timer](const auto& error) {
          if (const auto store = memory.lock(); store && !error) store->Apply(batch, done);
        });
  }

 private:
  boost::asio::io_context& io_;
  std::shared_ptr<store::memory::MemoryStore> memory_;
  const std::chrono::milliseconds delay_;
  const std::atomic<bool>& silent_;
};

/// The HTTP and RESP endpoints on one reactor. Every key gets the default policy: a bucket of 100.
class DistantStoreTest : public ::testing::Test {
 protected:
  DistantStoreTest()
      : live_(*policy::PolicySet::Compile({}, {policy::DefaultPolicy(), 0.1}, ids_)),
        shared_(live_, ids_, limiter::Fallback::Options{}) {
    boost::asio::io_context& io = pool_->reactor(0).context();
    auto guarded = std::make_unique<store::guard::GuardedStore>(
        io, guard_, std::make_unique<SlowStore>(io, engine_, 20ms, silent_));
    store_ = guarded.get();
    limiter_.emplace(shared_, std::move(guarded));
    HttpExchanges::AddRoutes(router_);
    worker_.emplace(pool_->reactor(0), options_, router_, *limiter_);
    http_door_.emplace(std::vector<HttpWorker*>{&*worker_});
    resp_door_.emplace(
        1, [this](net::Reactor&) -> limiter::Limiter& { return *limiter_; }, RespOptions{});
    http_ = pool_->Listen(*http_door_, "127.0.0.1:0")->port();
    resp_ = pool_->Listen(*resp_door_, "127.0.0.1:0")->port();
    pool_->Start();
  }

  ~DistantStoreTest() override { End(); }

  /// Shuts down like the service.
  void End() {
    if (!pool_) return;
    pool_->Stop();
    store_->Close();
    pool_.reset();
  }

  static std::string Post(std::string_view body) {
    return "POST /v1/check HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + std::string(body);
  }

  bool AllClosed() { return pool_->reactor(0).stats().open.load() == 0; }

  std::atomic<bool> silent_{false};
  policy::PolicyIds ids_;
  policy::LivePolicies live_;
  Engine engine_{*Quota::TokenBucket(1, 1)};
  store::guard::Guard guard_{
      store::guard::GuardOptions{.timeout = 300ms, .breaker = {}, .cache = {}}};
  limiter::Shared shared_;
  store::guard::GuardedStore* store_ = nullptr;
  std::optional<limiter::PolicyLimiter> limiter_;
  HttpOptions options_;
  http::Router router_;
  std::optional<HttpWorker> worker_;
  std::optional<HttpDoor> http_door_;
  std::optional<RespDoor> resp_door_;
  std::optional<net::ReactorPool> pool_{net::PoolOptions{.reactors = 1, .max_connections = 1000}};
  std::uint16_t http_ = 0;
  std::uint16_t resp_ = 0;
};

TEST_F(DistantStoreTest, PipelinedRequestsAreAnsweredInOrder) {
  HttpClient client(http_);
  std::string burst;
  for (int i = 0; i < 20; ++i) burst += Post(R"({"key":"k"})");
  burst += Post(R"({"checks":[{"key":"k"},{"key":"k"}]})");
  client.SendRaw(burst);
  // 100 permits refilled at 10 a second; all is decided within one second.
  int before = 100;
  for (int i = 0; i < 20; ++i) {
    const std::string body = client.ReadResponse().body;
    const int remaining = std::stoi(body.substr(body.find("\"remaining\":") + 12));
    EXPECT_LT(remaining, before) << body;
    before = remaining;
  }
  EXPECT_THAT(client.ReadResponse().body, ::testing::StartsWith("{\"results\":["));
}

TEST_F(DistantStoreTest, ClientsMayGoWhileTheStoreDecides) {
  for (int i = 0; i < 50; ++i) {
    TcpConnection http(http_);
    http.Send(Post(R"({"key":"gone"})"));
    TcpConnection resp(resp_);
    resp.Send("*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$2\r\n10\r\n$2\r\n10\r\n$2\r\n60\r\n");
    if (i % 2 == 0) {
      const linger reset{1, 0};
      ::setsockopt(http.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      ::setsockopt(resp.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
  }
  EXPECT_TRUE(WaitUntil([this] { return AllClosed(); }));
  HttpClient client(http_);
  EXPECT_EQ(client.Post("/v1/check", R"({"key":"k"})").status, 200);
}

TEST_F(DistantStoreTest, RedisCommandsBehindAQuestionKeepTheirPlace) {
  TcpConnection resp(resp_);
  std::string burst;
  for (int i = 0; i < 10; ++i) {
    burst += "*2\r\n$10\r\nWEIR.CHECK\r\n$1\r\nk\r\n*2\r\n$4\r\nECHO\r\n$1\r\n" +
             std::to_string(i) + "\r\n";
  }
  resp.Send(burst);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(resp.ReadThrough("\r\n"), "*8\r\n");
    resp.ReadThrough("$1\r\n");
    EXPECT_EQ(resp.ReadThrough("\r\n"), std::to_string(i) + "\r\n");
  }
}

TEST_F(DistantStoreTest, AStoreThatNeverAnswersIsGivenUpInTime) {
  silent_ = true;
  HttpClient client(http_);
  const test::Stopwatch watch;
  const test::HttpResponse answer = client.Post("/v1/check", R"({"key":"k"})");
  EXPECT_LT(watch.elapsed(), 2s);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("X-RateLimit-Degraded"), "local");
}

TEST_F(DistantStoreTest, ADrainAnswersWhatIsUnderWay) {
  HttpClient client(http_);
  client.SendRaw(Post(R"({"key":"k"})"));
  TcpConnection resp(resp_);
  resp.Send("*2\r\n$10\r\nWEIR.CHECK\r\n$1\r\nk\r\n");
  ASSERT_TRUE(WaitUntil([this] { return pool_->reactor(0).stats().open.load() == 2; }));
  EXPECT_TRUE(pool_->Drain(5s));
  EXPECT_EQ(client.ReadResponse().status, 200);
  EXPECT_THAT(resp.ReadAll(), ::testing::StartsWith("*8\r\n"));
}

TEST_F(DistantStoreTest, TheEndDoesNotWaitForAStoreThatIsSilent) {
  silent_ = true;
  std::vector<TcpConnection> connections;
  for (int i = 0; i < 10; ++i) {
    connections.emplace_back(http_).Send(Post(R"({"key":"k"})"));
    connections.emplace_back(resp_).Send("*2\r\n$10\r\nWEIR.CHECK\r\n$1\r\nk\r\n");
  }
  ASSERT_TRUE(WaitUntil([this] { return pool_->reactor(0).stats().open.load() == 20; }));
  End();
}

}  // namespace
}  // namespace weir::service
