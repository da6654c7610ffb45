// Every endpoint with a peer that stalls, splits its bytes anywhere and reads answers in any
// pieces, with stores that answer at any time: answers are complete, in order, none twice and none
// lost. One seed is one interleaving; a failure can be reproduced with its seed.
//
//   WEIR_INTERLEAVINGS=1000000 hostile.stalls_test     this many for each endpoint (default: 7,000)
//   WEIR_SEED=17 hostile.stalls_test                   from this seed on

#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <random>
#include <string>

#include "protocol/grpc/health.h"
#include "protocol/grpc/method.h"
#include "protocol/resp/service.h"
#include "service/grpc_connection.h"
#include "service/http_connection.h"
#include "service/http_exchange.h"
#include "service/resp_connection.h"
#include "support/scripted_transport.h"
#include "unit/protocol/grpc/h2_client.h"

namespace weir::service {
namespace {

using test::ScriptedTransport;
using test::Wire;
using Random = std::minstd_rand;

std::uint64_t Setting(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// 17 of "k17", whatever an endpoint puts before or after it.
std::int64_t NumberIn(std::string_view key) {
  std::int64_t number = -1;
  const std::size_t at = std::min(key.rfind('k'), key.size() - 1) + 1;
  std::from_chars(key.data() + at, key.data() + key.size(), number);
  return number;
}

/// Holds answers for later.
class Later {
 public:
  void Add(std::function<void()> answer) { waiting_.push_back(std::move(answer)); }
  /// False if none is waiting.
  bool AnswerOne(Random& random) {
    if (waiting_.empty()) return false;
    const std::size_t at = random() % waiting_.size();
    std::swap(waiting_[at], waiting_.back());
    const auto answer = std::move(waiting_.back());
    waiting_.pop_back();
    answer();
    return true;
  }

 private:
  std::vector<std::function<void()>> waiting_;
};

/// Key "k17" has 17 permits left, always. Answers immediately or later.
class NumberLimiter final : public limiter::Limiter {
 public:
  NumberLimiter(Later& later, Random& random) : later_(later), random_(random) {}

  void Decide(std::span<limiter::Check> checks, store::Done done) override {
    for (limiter::Check& check : checks) {
      check.status = {};
      check.policy = "p";
      check.decision = {};
      check.decision.remaining = NumberIn(check.request.key);
    }
    Answer(std::move(done));
  }
  void Apply(std::span<store::Application> batch, store::Done done) override {
    for (store::Application& application : batch) {
      application.status = {};
      application.decisions[0] = {};
      application.decisions[0].remaining = NumberIn(application.charges[0].key);
    }
    Answer(std::move(done));
  }

 private:
  void Answer(store::Done done) {
    if (random_() % 2 == 0) return done();
    later_.Add(std::move(done));
  }

  Later& later_;
  Random& random_;
};

class Stalls : public ::testing::Test {
 protected:
  /// Runs one interleaving per seed.
  template <typename One>
  void ForAll(One one) {
    const std::uint64_t first = Setting("WEIR_SEED", 1);
    const std::uint64_t count = Setting("WEIR_INTERLEAVINGS", 7'000);
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
      random_.seed(static_cast<Random::result_type>(seed * 2654435761U));
      wire_ = Wire();
      one();
      ASSERT_EQ(wire_.broken_rules, 0U) << "seed " << seed;
      ASSERT_EQ(reactor_.stats().open.load(), 0U) << "seed " << seed;
      ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
    std::cout << count << " interleavings, from seed " << first << "\n";
  }

  /// Runs events in any order until `to_send` has arrived and nothing more can happen.
  /// `each` runs after every event.
  template <typename Each>
  void Play(std::string& to_send, bool end, Each each) {
    for (bool generous = false;;) {
      const bool moved = Event(to_send, end, generous);
      each();
      if (moved) continue;
      if (generous) return;
      generous = true;  // the peer reads everything from now on
    }
  }

  bool Event(std::string& to_send, bool end, bool generous) {
    if (generous) wire_.room = 1 << 30;
    if (random_() % 4 == 0) reactor_.timers().Tick();
    switch (random_() % 4) {
      case 0:
        if (Arrive(to_send, end)) return true;
        break;
      case 1:
        if (later_.AnswerOne(random_)) return true;
        break;
      case 2:
        if (!generous && wire_.room < 4'000) {
          wire_.room += random_() % 3 == 0 ? 100'000 : random_() % 2'000;
        }
        break;
      default:
        break;
    }
    if (wire_.Tell(random_) || later_.AnswerOne(random_)) return true;
    return generous && Arrive(to_send, end);
  }

  bool Arrive(std::string& to_send, bool end) {
    if (to_send.empty()) return end && !std::exchange(wire_.ended, true);
    const std::size_t size =
        std::min<std::size_t>(to_send.size(), 1 + random_() % (random_() % 4 == 0 ? 4'000 : 100));
    wire_.arrived += to_send.substr(0, size);
    to_send.erase(0, size);
    return true;
  }

  Random random_;
  net::Reactor reactor_{0, 10};
  Wire wire_;
  Later later_;
  NumberLimiter limiter_{later_, random_};
};

/// Removes the first HTTP answer and returns its body.
std::string TakeHttp(std::string& bytes) {
  const std::size_t head = bytes.find("\r\n\r\n");
  const std::size_t length = bytes.find("Content-Length: ");
  if (!bytes.starts_with("HTTP/1.1 200 OK\r\n") || head == std::string::npos || length > head) {
    return "not an answer: " + bytes.substr(0, 200);
  }
  const std::size_t size = std::strtoull(bytes.c_str() + length + 16, nullptr, 10);
  std::string body = bytes.substr(head + 4, size);
  bytes.erase(0, head + 4 + size);
  return body;
}

TEST_F(Stalls, HttpAnswersAreWholeAndInOrder) {
  http::Router router;
  router.Add("GET", "/text", [this](const http::Request& request, http::Reply reply) {
    http::Response response;
    response.body = std::string(request.query) + ":" +
                    std::string(static_cast<std::size_t>(NumberIn(request.query)) * 97, 't');
    if (random_() % 2 == 0) return reply(std::move(response));
    later_.Add([reply = std::move(reply), response] { reply(response); });
  });
  HttpExchanges::AddRoutes(router);
  HttpOptions options;
  HttpWorker worker(reactor_, options, router, limiter_);
  worker.BindToThisThread();
  ForAll([&] {
    const int requests = 1 + static_cast<int>(random_() % 30);
    std::vector<bool> checks;
    std::string sent;
    for (int i = 0; i < requests; ++i) {
      checks.push_back(random_() % 2 == 0);
      const std::string number = "k" + std::to_string(i);
      const std::string body = "{\"key\":\"" + number + "\"}";
      sent += checks.back() ? "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                                  std::to_string(body.size()) + "\r\n\r\n" + body
                            : "GET /text?" + number + " HTTP/1.1\r\nHost: x\r\n\r\n";
    }
    boost::intrusive_ptr<HttpConnection> connection(
        new HttpConnection(worker, std::make_unique<ScriptedTransport>(wire_), "127.0.0.1"));
    const bool end = random_() % 2 == 0;
    connection->Start();
    Play(sent, end, [] {});
    EXPECT_EQ(wire_.closed, end);
    for (int i = 0; i < requests; ++i) {
      const std::string number = std::to_string(i);
      const std::string body = TakeHttp(wire_.taken);
      if (checks[static_cast<std::size_t>(i)]) {
        EXPECT_NE(body.find("\"remaining\":" + number + ","), std::string::npos) << body;
      } else {
        EXPECT_EQ(body, "k" + number + ":" + std::string(static_cast<std::size_t>(i) * 97, 't'));
      }
    }
    EXPECT_EQ(wire_.taken, "");
    connection->Abort();
    wire_.LetGo();
  });
}

TEST_F(Stalls, RedisRepliesAreWholeAndInOrder) {
  resp::Service service;
  const RespOptions options;
  net::DoorMetrics metrics;
  RespWorker worker(options, service, limiter_, metrics);
  const auto bulk = [](const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  };
  ForAll([&] {
    const int commands = 1 + static_cast<int>(random_() % 60);
    std::string sent;
    std::string expected;
    for (int i = 0; i < commands; ++i) {
      const std::string number = std::to_string(i);
      if (random_() % 2 == 0) {
        sent += "*5\r\n" + bulk("CL.THROTTLE") + bulk("k" + number) + bulk("9") + bulk("1") +
                bulk("60");
        expected += "*5\r\n:0\r\n:0\r\n:" + number + "\r\n:-1\r\n:0\r\n";
      } else {
        const std::string text = number + std::string(random_() % 3'000, 'e');
        sent += "*2\r\n" + bulk("ECHO") + bulk(text);
        expected += bulk(text);
      }
    }
    boost::intrusive_ptr<RespConnection> connection(
        new RespConnection(reactor_, worker, std::make_unique<ScriptedTransport>(wire_),
                           "127.0.0.1:1", "127.0.0.1:2"));
    const bool end = random_() % 2 == 0;
    connection->Start();
    Play(sent, end, [] {});
    EXPECT_EQ(wire_.closed, end);
    EXPECT_EQ(wire_.taken, expected);
    connection->Abort();
    wire_.LetGo();
  });
}

/// Answers a message with the same message, immediately or later.
class LateEcho final : public grpc::Method {
 public:
  LateEcho(Later& later, Random& random) : later_(later), random_(random) {}

  void OnMessage(grpc::Call& call, std::string_view message) override {
    google::protobuf::BytesValue value;
    ASSERT_TRUE(value.ParseFromArray(message.data(), static_cast<int>(message.size())));
    if (random_() % 2 == 0) return Answer(call, value);
    later_.Add([link = call.session().link(), id = call.id(), value] {
      grpc::Call* waiting = *link == nullptr ? nullptr : (*link)->Find(id);
      if (waiting != nullptr) Answer(*waiting, value);
    });
  }

 private:
  static void Answer(grpc::Call& call, const google::protobuf::BytesValue& value) {
    call.Send(value);
    call.Finish(grpc::StatusCode::kOk);
  }

  Later& later_;
  Random& random_;
};

TEST_F(Stalls, GrpcAnswersAreWholeAndNoneIsLost) {
  grpc::Services services;
  services.Add("/t/Echo", std::make_unique<LateEcho>(later_, random_));
  grpc::Health health({});
  net::DoorMetrics metrics;
  const GrpcDoorOptions options;
  ForAll([&] {
    grpc::testing::H2Client client;
    std::vector<std::pair<std::int32_t, std::string>> calls;
    for (std::uint64_t i = 0, count = 1 + random_() % 12; i < count; ++i) {
      google::protobuf::BytesValue value;
      value.set_value(std::to_string(i) + std::string(random_() % 5'000, 'g'));
      calls.emplace_back(client.Call("/t/Echo", grpc::testing::Framed(value)),
                         value.SerializeAsString());
    }
    boost::intrusive_ptr<GrpcConnection> connection(new GrpcConnection(
        reactor_, std::make_unique<ScriptedTransport>(wire_), services, health, metrics, options));
    std::string sent = client.Output();
    connection->Start();
    Play(sent, false, [&] {
      if (wire_.taken.empty()) return;
      client.Input(std::exchange(wire_.taken, {}));
      sent += client.Output();
    });
    EXPECT_FALSE(wire_.closed);
    for (const auto& [id, message] : calls) {
      EXPECT_EQ(client.answer(id).status(), "0");
      EXPECT_EQ(client.answer(id).messages(), std::vector<std::string>{message});
    }
    connection->Abort();
    wire_.LetGo();
  });
}

}  // namespace
}  // namespace weir::service
