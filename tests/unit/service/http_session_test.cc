#include "service/http_session.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <thread>

#include "service/http_exchange.h"

namespace weir::service {
namespace {

/// Allows checks that cost at most 10. Answers immediately, or when Finish is called.
class FakeLimiter final : public limiter::Limiter {
 public:
  void Decide(std::span<limiter::Check> checks, store::Done done) override {
    batches.push_back(checks.size());
    for (limiter::Check& check : checks) {
      check.status = {};
      check.policy = "fake";
      check.decision = {};
      check.decision.limit = 10;
      check.decision.remaining = 10 - check.request.cost;
      if (check.request.cost > 10) check.decision.verdict = Verdict::kNever;
      if (check.request.key == "broken") check.status = Error{Code::kUnavailable, "away"};
    }
    if (later) {
      waiting.push_back(std::move(done));
    } else {
      done();
    }
  }
  void Apply(std::span<store::Application>, store::Done done) override { done(); }

  void Finish() {
    const auto done = std::move(waiting.front());
    waiting.pop_front();
    done();
  }

  bool later = false;
  std::deque<store::Done> waiting;
  std::vector<std::size_t> batches;
};

/// Stands in for a socket: keeps the session running and collects its output.
class FakeConnection final : public net::Connection, public HttpSession::Transport {
 public:
  FakeConnection(HttpWorker& worker)
      : Connection(worker.reactor()), session(worker, *this, "127.0.0.1", false) {}
  void Drain() override {}
  void Abort() override {}
  void OnDeadline() override {}
  void Resume() override { session.Advance(); }
  boost::intrusive_ptr<net::Connection> Self() override { return this; }
  void Close() override { closed = true; }

  HttpSession session;
  bool closed = false;
};

class HttpSessionTest : public ::testing::Test {
 protected:
  HttpSessionTest() : reactor_(0, 10) {
    options_.limits.body_bytes = 1000;
    options_.limits.large_body_bytes = 1000;
    options_.answer_budget = 200'000;
    HttpExchanges::AddRoutes(router_);
    worker_ = std::make_unique<HttpWorker>(reactor_, options_, router_, limiter_);
    worker_->BindToThisThread();
    connection_ = new FakeConnection(*worker_);
    router_.Add("GET", "/hello", [](const http::Request& request, http::Reply reply) {
      http::Response response;
      response.body = "hello " + std::string(request.query);
      reply(std::move(response));
    });
    router_.Add("GET", "/later", [this](const http::Request&, http::Reply reply) {
      replies_.push_back(std::move(reply));
    });
    router_.Add("GET", "/large", [](const http::Request&, http::Reply reply) {
      reply(http::Response::Json(std::string(100'000, 'l')));
    });
    router_.Add("GET", "/throws", [](const http::Request&, http::Reply) {
      throw std::runtime_error("secret detail");
    });
  }

  HttpSession& session() { return connection_->session; }

  std::string Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::span<char> space = session().Space();
      const std::size_t n = std::min(space.size(), bytes.size());
      std::copy_n(bytes.begin(), n, space.begin());
      session().Received(n);
      bytes.remove_prefix(n);
      session().Advance();
    }
    return Output();
  }

  std::string Output() {
    std::string output(session().Output());
    session().Sent(output.size());
    EXPECT_FALSE(connection_->closed);
    return output;
  }

  static std::string Check(const std::string& body, const std::string& headers = "") {
    return "POST /v1/check HTTP/1.1\r\nHost: x\r\n" + headers +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  static int Count(const std::string& text, std::string_view part) {
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++count;
    }
    return count;
  }

  HttpOptions options_;
  http::Router router_;
  FakeLimiter limiter_;
  net::Reactor reactor_;
  std::unique_ptr<HttpWorker> worker_;
  boost::intrusive_ptr<FakeConnection> connection_;
  std::vector<http::Reply> replies_;
};

TEST_F(HttpSessionTest, ARequestForManyIsDecidedInTurns) {
  options_.limits.body_bytes = 100'000;
  std::string many = R"({"checks":[{"key":"a"})";
  for (int i = 1; i < 1000; ++i) many += R"(,{"key":"a"})";
  const std::string bytes = Check(many + "]}") + Check(R"({"key":"b","cost":3})");
  for (const bool later : {false, true}) {
    connection_ = new FakeConnection(*worker_);
    limiter_.later = later;
    limiter_.batches.clear();
    EXPECT_EQ(Send(bytes), "");
    for (std::size_t turns = 1; turns < 4; ++turns) {
      EXPECT_TRUE(session().paused());
      EXPECT_EQ(limiter_.batches, std::vector<std::size_t>(turns, 256));
      EXPECT_EQ(Output(), "");
      session().Advance();
    }
    EXPECT_EQ(session().waiting(), later);
    const auto finish = [this] {
      while (!limiter_.waiting.empty()) limiter_.Finish();
      return Output();
    };
    std::string answers = finish();
    session().Advance();
    answers += finish();
    EXPECT_EQ(Count(answers, "HTTP/1.1 200"), 2);
    EXPECT_EQ(Count(answers, "\"remaining\":9"), 1000);
    EXPECT_GT(answers.find("\"remaining\":7"), answers.rfind("\"remaining\":9"));
    EXPECT_FALSE(session().paused() || session().waiting());
  }
}

TEST_F(HttpSessionTest, AnswersACheck) {
  const std::string answer = Send(Check(R"({"key":"a","cost":3})"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(
      answer.ends_with("\r\n\r\n{\"allowed\":true,\"limit\":10,\"remaining\":7,\"retryAfterMs\":0,"
                       "\"resetAfterMs\":0,"
                       "\"policy\":\"fake\"}"))
      << answer;
  EXPECT_TRUE(session().idle());
  EXPECT_FALSE(session().finished());
}

TEST_F(HttpSessionTest, DecidesPipelinedChecksTogetherAndAnswersInOrder) {
  const std::string answer =
      Send(Check(R"({"key":"a","cost":1})") + Check(R"({"key":)") +
           Check(R"({"checks":[{"key":"a","cost":2},{"key":"b","cost":11}]})") +
           "GET /hello?3 HTTP/1.1\r\n\r\n" + Check(R"({"key":"a","cost":4})"));
  // One call for the requests before the other one, one for those after.
  EXPECT_EQ(limiter_.batches, (std::vector<std::size_t>{3, 1}));
  const std::size_t one = answer.find("\"remaining\":9");
  const std::size_t bad = answer.find("400 Bad Request");
  const std::size_t two =
      answer.find("{\"results\":[{\"allowed\":true,\"limit\":10,\"remaining\":8");
  const std::size_t never = answer.find("{\"allowed\":false");
  const std::size_t hello = answer.find("hello 3");
  const std::size_t last = answer.find("\"remaining\":6");
  EXPECT_LT(one, bad);
  EXPECT_LT(bad, two);
  EXPECT_LT(two, never);
  EXPECT_LT(never, hello);
  EXPECT_LT(hello, last);
  EXPECT_NE(last, std::string::npos) << answer;
}

TEST_F(HttpSessionTest, AnswersWhatAStoreDecidesLater) {
  limiter_.later = true;
  EXPECT_EQ(Send(Check(R"({"key":"a"})") + "GET /hello?x HTTP/1.1\r\n\r\n"), "");
  EXPECT_TRUE(session().waiting());
  limiter_.Finish();
  const std::string answer = Output();
  EXPECT_LT(answer.find("allowed"), answer.find("hello x"));
  EXPECT_FALSE(session().waiting());
}

TEST_F(HttpSessionTest, AnswersFromAnotherThreadAndKeepsTheOrder) {
  EXPECT_EQ(Send("GET /later HTTP/1.1\r\n\r\nGET /hello?x HTTP/1.1\r\n\r\n"), "");
  std::thread other([&] {
    http::Response response;
    response.body = "late";
    replies_[0](std::move(response));
    replies_.clear();
  });
  other.join();
  EXPECT_EQ(Output(), "");  // not before the session's own thread processes it
  reactor_.context().poll();
  const std::string answer = Output();
  EXPECT_LT(answer.find("late"), answer.find("hello x")) << answer;
}

TEST_F(HttpSessionTest, AnswersForHandlersThatForgetOrThrow) {
  EXPECT_EQ(Send("GET /later HTTP/1.1\r\n\r\n"), "");
  replies_.clear();
  EXPECT_TRUE(Output().starts_with("HTTP/1.1 500 "));
  const std::string answer = Send("GET /throws HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
  EXPECT_EQ(answer.find("secret"), std::string::npos);
}

TEST_F(HttpSessionTest, RefusesGarbageAfterGoodRequestsAndCloses) {
  const std::string answer =
      Send(Check(R"({"key":"a"})") + "\x01garbage\r\n\r\n" + Check(R"({"key":"a"})"));
  EXPECT_EQ(Count(answer, "HTTP/1.1 200"), 1) << answer;
  EXPECT_EQ(Count(answer, "HTTP/1.1 400"), 1) << answer;
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(session().finished());
}

TEST_F(HttpSessionTest, ClosesAfterTheClientSaidSo) {
  const std::string answer =
      Send(Check(R"({"key":"a"})", "Connection: close\r\n") + Check(R"({"key":"a"})"));
  EXPECT_EQ(Count(answer, "HTTP/1.1 200"), 1) << answer;
  EXPECT_EQ(Count(answer, "Connection: close"), 1) << answer;
  EXPECT_TRUE(session().finished());
}

TEST_F(HttpSessionTest, AnswersWhatCameBeforeTheClientHalfClosed) {
  session().EndOfInput();
  const std::string answer = Send(Check(R"({"key":"a"})"));
  EXPECT_EQ(Count(answer, "HTTP/1.1 200"), 1) << answer;
  EXPECT_TRUE(session().finished());
}

TEST_F(HttpSessionTest, SaysContinueOnceWhenAskedTo) {
  const std::string body = R"({"key":"a"})";
  const std::string request = Check(body, "Expect: 100-continue\r\n");
  EXPECT_EQ(Send(request.substr(0, request.size() - body.size())), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(Send(body.substr(0, 4)), "");
  EXPECT_TRUE(Send(body.substr(4)).starts_with("HTTP/1.1 200 OK"));
}

TEST_F(HttpSessionTest, RefusesBodiesBeyondTheLimitBeforeTheyAreSent) {
  const std::string answer = Send("POST /v1/check HTTP/1.1\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ")) << answer;
  EXPECT_TRUE(session().finished());
}

TEST_F(HttpSessionTest, RefusesEndlessChunkExtensions) {
  std::string answer = Send("POST /v1/check HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 100'000 && answer.empty(); ++i)
    answer = Send("1;x=yyyyyyyyyyyyyyyyyyyyyyyy\r\na\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ")) << answer;
}

TEST_F(HttpSessionTest, RefusalsAre429OnlyWhenAskedFor) {
  const std::string body = R"({"key":"a","cost":11})";
  EXPECT_TRUE(Send(Check(body)).starts_with("HTTP/1.1 200 "));
  const std::string asked =
      "POST /v1/check?http_status=1 HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  EXPECT_TRUE(Send(asked).starts_with("HTTP/1.1 429 Too Many Requests\r\n"));
  // If misspelled, it must not silently mean 200.
  const std::string mistyped = std::string(asked).replace(asked.find("http_"), 5, "htpp_");
  const std::string answer = Send(mistyped);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
  EXPECT_NE(answer.find("query: only http_status is known"), std::string::npos) << answer;
}

TEST_F(HttpSessionTest, ABatchIs200OnlyIfAllOfItIsAllowedWhenAskedForStatuses) {
  const auto status = [this](const std::string& checks) {
    const std::string body = "{\"checks\":[" + checks + "]}";
    return Send("POST /v1/check?http_status=1 HTTP/1.1\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body)
        .substr(9, 3);
  };
  const std::string allowed = R"({"key":"a"})";
  const std::string refused = R"({"key":"a","cost":11})";
  const std::string undecided = R"({"key":"broken"})";
  EXPECT_EQ(status(allowed), "200");
  EXPECT_EQ(status(allowed + "," + undecided + "," + allowed), "503");
  EXPECT_EQ(status(undecided + "," + refused), "429");
}

TEST_F(HttpSessionTest, UndecidedChecksAreErrors) {
  const std::string answer = Send(Check(R"({"key":"broken"})"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("\"message\":\"away\""), std::string::npos);
}

TEST_F(HttpSessionTest, EchoesRequestIdsAndTraces) {
  const std::string answer =
      Send(Check(R"({"key":"a"})",
                 "X-Request-Id: r-1\r\ntraceparent: "
                 "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n"));
  EXPECT_NE(answer.find("X-Request-Id: r-1\r\n"), std::string::npos) << answer;
  EXPECT_NE(answer.find("traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-"), std::string::npos);
  EXPECT_EQ(answer.find("00f067aa0ba902b7"), std::string::npos) << "the span must be our own";
}

TEST_F(HttpSessionTest, OtherMethodsOnCheckAre405) {
  const std::string answer = Send("GET /v1/check HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 405 ")) << answer;
  EXPECT_NE(answer.find("Allow: POST\r\n"), std::string::npos);
}

TEST_F(HttpSessionTest, HeadHasNoBody) {
  const std::string answer = Send("HEAD /hello?x HTTP/1.1\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 7\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST_F(HttpSessionTest, ClientsThatDoNotReadTheirAnswersTogetherHoldNoMoreThanTheyMay) {
  constexpr std::string_view kLarge = "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
  std::vector<boost::intrusive_ptr<FakeConnection>> stalled;
  const auto ask = [&](std::string_view bytes) {
    const auto& connection = stalled.emplace_back(new FakeConnection(*worker_));
    HttpSession& session = connection->session;
    std::copy(bytes.begin(), bytes.end(), session.Space().begin());
    session.Received(bytes.size());
    session.Advance();
    session.Sent(100);  // the client reads no more of it
    return !connection->closed;
  };
  EXPECT_TRUE(ask(kLarge));
  // Another 100,000 bytes and their heads are more than 200,000.
  EXPECT_FALSE(ask(kLarge));
  stalled.pop_back();
  // Small answers are never cut off; nor are clients that keep reading.
  EXPECT_FALSE(ask(kLarge));
  EXPECT_TRUE(ask("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_NE(Send(kLarge).find("lll"), std::string::npos);
  stalled.clear();
  EXPECT_TRUE(ask(kLarge));
}

}  // namespace
}  // namespace weir::service
