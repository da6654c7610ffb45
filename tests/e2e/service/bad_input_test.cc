// Invalid, oversized or slow input is answered with a clear 4xx or a closed connection, within
// a bound, and the service continues.

#include <thread>

#include "e2e/service/fixture.h"
#include "support/stopwatch.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class BadInput : public ServiceTest {
 protected:
  void TearDown() override {
    // In any case, the service still answers and has not grown.
    EXPECT_EQ(Check(R"({"key":"after"})").status, 200);
    EXPECT_LT(Resident(), std::size_t{256} << 20U);
  }

  std::string Raw(std::string_view bytes) {
    TcpConnection connection(port_);
    connection.Send(bytes);
    connection.FinishSending();
    return connection.ReadAll();
  }
};

TEST_F(BadInput, BodiesThatAreNotChecksAre400AndNameTheField) {
  Serve();
  for (const auto& [body, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "the body is empty"},
           {"{", "not well-formed JSON"},
           {"nonsense", "must be a JSON object"},
           {R"({"key":5})", "key: must be a string"},
           {R"({"key":"a","cost":"1"})", "cost: must be an integer"},
           {R"({"key":"a","cost":1e400})", "cost: must be an integer"},
           {R"({"key":"a","cost":999999999999999999999999})", "cost: must be an integer"},
           {R"({"kye":"a"})", "kye: is not a field"},
           {R"({"checks":[{"key":"a"},{"key":""}]})", "checks[1].key: must not be empty"}}) {
    const HttpResponse response = Check(body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_THAT(response.body, HasSubstr(message)) << body;
  }
}

// Not every database accepts it in text. A check must say so: `weir policy apply` relies on it.
TEST_F(BadInput, AZeroByteInAPolicyIsRefusedByAllStoresAndByTheCheck) {
  Serve();
  const std::string body =
      R"({"key":"p","type":"TOKEN_BUCKET","match":{"user":"a\u0000b"},"capacity":5})";
  for (const char* path : {"/admin/policies/p/check", "/admin/policies"}) {
    const HttpResponse refused = Client().Post(path, body);
    EXPECT_EQ(refused.status, 400) << path;
    EXPECT_THAT(refused.body, HasSubstr("match.user: must not contain a zero byte")) << path;
  }
}

TEST_F(BadInput, HugeBodiesAre413) {
  Serve();
  const std::string body(10 << 20, 'x');
  EXPECT_THAT(Raw("POST /v1/check HTTP/1.1\r\nContent-Length: 10485760\r\n\r\n" + body),
              StartsWith("HTTP/1.1 413 "));
  std::string chunked = "POST /v1/check HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 160; ++i) chunked += "10000\r\n" + std::string(65536, 'x') + "\r\n";
  EXPECT_THAT(Raw(chunked), StartsWith("HTTP/1.1 413 "));
}

TEST_F(BadInput, OnlyBatchesOfSlotsAreLarge) {
  Serve();
  const std::string rest = " HTTP/1.1\r\nConnection: close\r\nContent-Length: 600000\r\n\r\n" +
                           std::string(600'000, ' ');
  for (const char* path : {"/v1/check", "/v1/refund", "/api/send", "/api/v1/slots", "/nothing"}) {
    EXPECT_THAT(Raw("POST " + std::string(path) + rest), StartsWith("HTTP/1.1 413 ")) << path;
  }
  for (const char* path : {"batch", "done", "failed"}) {
    EXPECT_THAT(Raw("POST /api/v1/slots/" + std::string(path) + rest), StartsWith("HTTP/1.1 400 "))
        << path;
  }
}

TEST_F(BadInput, HugeHeadersAre431) {
  Serve();
  std::string many = "GET /healthz HTTP/1.1\r\n";
  for (int i = 0; i < 100'000; ++i) many += "a:b\r\n";
  EXPECT_THAT(Raw(many + "\r\n"), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Raw("GET /healthz HTTP/1.1\r\na: " + std::string(1 << 20, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
}

TEST_F(BadInput, GarbageIs400AndClosed) {
  Serve();
  EXPECT_THAT(Raw("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
              StartsWith("HTTP/1.1 400 "));
  const std::string good = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string answer = Raw(good + good + "garbage\r\n\r\n" + good);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  const std::size_t bad = answer.find("HTTP/1.1 400 ");
  ASSERT_NE(bad, std::string::npos) << answer;
  EXPECT_EQ(answer.find("HTTP/1.1 200 ", bad), std::string::npos)
      << "nothing after the garbage counts";
}

TEST_F(BadInput, HalfClosedClientsGetTheirAnswers) {
  Serve();
  const std::string body = R"({"key":"a"})";
  const std::string answer =
      Raw("POST /v1/check HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
          body);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(Raw("POST /v1/check HTTP/1.1\r\nContent-Le"), "");
}

TEST_F(BadInput, SlowClientsAreTimedOut) {
  const auto config =
      dir_.Write("weir.yaml", "limits: { request_timeout: 1s, idle_timeout: 1s }\n");
  Serve({"--config", config.string()});
  TcpConnection slow(port_);
  const Stopwatch watch;
  // A byte now and then must not extend the time limit.
  slow.Send("POST /v1/check HTTP/1.1\r\n");
  std::thread dripping([&] {
    for (int i = 0; i < 8; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      slow.Send("a");
    }
  });
  dripping.join();
  EXPECT_THAT(slow.ReadAll(), StartsWith("HTTP/1.1 408 "));
  TcpConnection idle(port_);
  EXPECT_EQ(idle.ReadAll(), "");
  EXPECT_LT(watch.elapsed(), std::chrono::seconds(8));
}

TEST_F(BadInput, ManyHalfSentRequestsDoNotFillMemory) {
  Serve();
  std::vector<TcpConnection> connections;
  const std::string begun =
      "POST /v1/check HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + std::string(900'000, ' ');
  for (int i = 0; i < 400; ++i) {
    connections.emplace_back(port_);
    try {
      connections.back().Send(begun);
    } catch (const std::runtime_error&) {
      // Refused while it was being sent, as intended.
    }
  }
  EXPECT_LT(Resident(), std::size_t{256} << 20U);
  // Small requests are still served.
  EXPECT_EQ(Check(R"({"key":"small"})").status, 200);
}

TEST_F(BadInput, UnknownPathsAndMethodsAreTold) {
  Serve();
  HttpClient client = Client();
  EXPECT_EQ(client.Get("/nope").status, 404);
  const HttpResponse wrong = client.Send("DELETE", "/healthz");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.Header("Allow"), "GET");
  EXPECT_EQ(client.Get("/v1/check").status, 405);
  EXPECT_EQ(client.Get("/admin/policies/%zz").status, 400);
}

}  // namespace
}  // namespace weir::test
