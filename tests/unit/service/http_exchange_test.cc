// How many requests are decided in parts at a time, and what is noted of refused questions.

#include "service/http_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/http_session.h"

namespace weir::service {
namespace {

/// Allows everything, immediately or when told to.
class LaxLimiter final : public limiter::Limiter {
 public:
  void Decide(std::span<limiter::Check> checks, store::Done done) override {
    for (limiter::Check& check : checks) check.status = status;
    if (later) return waiting.push_back(std::move(done));
    done();
  }
  void Apply(std::span<store::Application>, store::Done done) override { done(); }
  void NoteRejection(const limiter::Rejection& rejection) override {
    noted += std::string(rejection.door) + " " + std::string(rejection.request_id) + " " +
             std::string(rejection.address) + ": " + std::string(rejection.reason) + "\n";
  }
  void AnswerAll() {
    for (const store::Done& done : std::exchange(waiting, {})) done();
  }

  bool later = false;
  std::string noted;
  Status status;
  std::vector<store::Done> waiting;
};

class FakeConnection final : public net::Connection, public HttpSession::Transport {
 public:
  explicit FakeConnection(HttpWorker& worker)
      : Connection(worker.reactor()), session(worker, *this, "127.0.0.1", false) {}
  void Drain() override {}
  void Abort() override {}
  void OnDeadline() override {}
  void Resume() override { session.Advance(); }
  boost::intrusive_ptr<net::Connection> Self() override { return this; }

  HttpSession session;
};

class HttpExchangeTest : public ::testing::Test {
 protected:
  using Connections = std::vector<boost::intrusive_ptr<FakeConnection>>;

  HttpExchangeTest() : reactor_(0, 200) {
    options_.answer_budget = std::size_t{1} << 30U;
    HttpExchanges::AddRoutes(router_);
    worker_ = std::make_unique<HttpWorker>(reactor_, options_, router_, limiter_);
    worker_->BindToThisThread();
  }

  /// Connections that each get a request for this many checks, and one turn.
  Connections Ask(std::size_t connections, int checks = 1000) {
    std::string body = R"({"checks":[{"key":"a"})";
    for (int i = 1; i < checks; ++i) body += R"(,{"key":"a"})";
    body += "]}";
    const std::string bytes =
        "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n\r\n" + body;
    Connections all;
    for (std::size_t i = 0; i < connections; ++i) all.push_back(Send(bytes));
    return all;
  }
  boost::intrusive_ptr<FakeConnection> Send(std::string_view bytes) {
    boost::intrusive_ptr<FakeConnection> connection(new FakeConnection(*worker_));
    HttpSession& session = connection->session;
    while (!bytes.empty()) {
      const std::span<char> space = session.Space();
      const std::size_t size = std::min(space.size(), bytes.size());
      std::copy_n(bytes.begin(), size, space.begin());
      session.Received(size);
      bytes.remove_prefix(size);
    }
    session.Advance();
    return connection;
  }
  static std::size_t Midway(const Connections& all) {
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const auto& each) {
      return each->session.stage() == net::Stream::Stage::kBusy;
    }));
  }
  static void Finish(const Connections& all) {
    for (const auto& each : all) {
      while (each->session.stage() == net::Stream::Stage::kBusy) each->session.Advance();
    }
  }
  static bool Answered(const Connections& all) {
    return std::all_of(all.begin(), all.end(), [](const auto& each) {
      return each->session.Output().starts_with("HTTP/1.1 200 OK\r\n") && each->session.idle();
    });
  }

  HttpOptions options_;
  http::Router router_;
  LaxLimiter limiter_;
  net::Reactor reactor_;
  std::unique_ptr<HttpWorker> worker_;
};

// Its client may see a refusal like any other.
TEST_F(HttpExchangeTest, AQuestionThatIsRefusedIsNoted) {
  const std::string start = "GET /v1/auth?deny_status=403 HTTP/1.1\r\nHost: x\r\n";
  const auto refused = Send(start + "X-Original-URI: /a/../b\r\nX-Request-Id: r-1\r\n\r\n");
  EXPECT_TRUE(refused->session.Output().starts_with("HTTP/1.1 403 "));
  options_.auth.target = AuthTarget::kOriginal;
  Send(start + "\r\n");
  EXPECT_EQ(limiter_.noted,
            "http r-1 127.0.0.1: the path contains a . or .. segment\n"
            "http  127.0.0.1: X-Original-URI is missing, and auth.target is original\n");
}

// 32 requests for 1,000 keys are within 32,768 keys.
TEST_F(HttpExchangeTest, BeyondABoundARequestIsDecidedAtOnce) {
  const Connections all = Ask(100);
  EXPECT_EQ(Midway(all), 32U);
  EXPECT_EQ(Midway(Ask(10, 256)), 0U);
  // One that is answered makes room for one more.
  Finish({all[3]});
  EXPECT_EQ(Midway(Ask(2)), 1U);
  Finish(all);
  EXPECT_TRUE(Answered(all));
}

TEST_F(HttpExchangeTest, WhoeverIsDoneMakesRoom) {
  // Closed before they were decided: the first of them, whose memory is kept, and the last.
  EXPECT_EQ(Midway(Ask(100)), 32U);
  Connections gone = Ask(100);
  EXPECT_EQ(Midway(gone), 32U);
  while (!gone.empty()) gone.pop_back();
  Finish(Ask(100));
  limiter_.status = Error{Code::kUnavailable, "away"};
  Finish(Ask(100));
  limiter_.status = {};
  Connections same = Ask(40);
  EXPECT_EQ(Midway(same), 32U);
  Finish(same);
  EXPECT_EQ(Midway(Ask(100)), 32U);
}

TEST_F(HttpExchangeTest, WhoeverOnlyWaitsForTheStoreMakesRoom) {
  limiter_.later = true;
  const Connections first = Ask(32);
  EXPECT_EQ(Midway(first), 32U);
  Finish(first);
  Connections second = Ask(100);
  EXPECT_EQ(Midway(second), 32U);
  // Closed before the store has answered.
  second.clear();
  limiter_.AnswerAll();
  EXPECT_TRUE(Answered(first));
  EXPECT_EQ(Midway(Ask(100)), 32U);
  limiter_.AnswerAll();
}

}  // namespace
}  // namespace weir::service
