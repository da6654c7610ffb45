#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>

#include "integration/proxy/fixture.h"
#include "support/ports.h"
#include "support/wait.h"

namespace weir::proxy {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST_F(ProxyTest, SaysWhenNoUpstreamListens) {
  AddUpstream(test::FreePort());
  StartProxy();
  test::HttpClient client(port_);
  for (int i = 0; i < 2; ++i) {
    const auto response = client.Get("/");
    EXPECT_EQ(response.status, 502);
    EXPECT_EQ(response.Header("Content-Type"), "application/json");
    EXPECT_THAT(response.body, HasSubstr("{\"status\":502,\"error\":\"Bad Gateway\",\"message\":"));
  }
  EXPECT_EQ(pool_->reactor(0).stats().accepted, 1U);  // the client's connection stays open
  EXPECT_THAT(Scraped(), HasSubstr("weir_proxy_upstream_up{upstream=\"http://127.0.0.1:"));
  EXPECT_FALSE(options_.upstreams[0].health->up());
}

TEST_F(ProxyTest, AsksAnotherUpstreamWhenOneDoesNotListen) {
  AnswerAlways(kOk);
  AddUpstream(test::FreePort());
  AddUpstream(upstream_->port());
  StartProxy();
  test::HttpClient client(port_);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(client.Post("/", "x").status, 200);
  EXPECT_FALSE(options_.upstreams[0].health->up());
  EXPECT_TRUE(options_.upstreams[1].health->up());
}

TEST_F(ProxyTest, KnowsWhenAnUpstreamAnswersAgain) {
  const auto served = std::make_shared<std::atomic<int>>(0);
  StartUpstream([served](test::TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    if (++*served > 1) connection.Send(kOk);
  });
  StartProxy();
  const std::string sample =
      "\nweir_proxy_upstream_up{upstream=\"http://127.0.0.1:" + std::to_string(upstream_->port());
  test::HttpClient client(port_);
  EXPECT_EQ(client.Send("POST", "/").status, 502);
  EXPECT_THAT(Scraped(), HasSubstr(sample + "\"} 0\n"));
  EXPECT_EQ(client.Send("POST", "/").status, 200);
  EXPECT_THAT(Scraped(), HasSubstr(sample + "\"} 1\n"));
}

TEST_F(ProxyTest, AnUpstreamThatIsListedTwiceHasOneState) {
  const std::uint16_t dead = test::FreePort();
  AddUpstream(dead);
  AddUpstream(dead);
  StartProxy();
  EXPECT_EQ(test::HttpClient(port_).Get("/").status, 502);
  const std::string text = Scraped();
  const std::size_t first = text.find("weir_proxy_upstream_up{");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("weir_proxy_upstream_up{", first + 1), std::string::npos);
}

TEST_F(ProxyTest, RepeatsAGetThatMetAClosingConnection) {
  // Every connection serves one request and closes when the next one arrives.
  StartUpstream([this](test::TcpConnection& connection) {
    Remember(connection.ReadThrough("\r\n\r\n"));
    connection.Send(kOk);
    connection.ReadThrough("\r\n\r\n");
  });
  StartProxy();
  test::HttpClient client(port_);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(client.Get("/").status, 200) << i;
  EXPECT_THAT(heads(), SizeIs(4));
  EXPECT_EQ(stats().retries, 3U);
}

TEST_F(ProxyTest, NeverRepeatsARequestThatMayHaveHadAnEffect) {
  StartUpstream([this](test::TcpConnection& connection) {
    Remember(connection.ReadThrough("\r\n\r\n"));
    connection.Send(kOk);
    Remember(connection.ReadThrough("\r\n\r\n"));
  });
  StartProxy();
  test::HttpClient client(port_);
  EXPECT_EQ(client.Get("/").status, 200);
  EXPECT_EQ(client.Send("POST", "/").status, 502);
  EXPECT_THAT(heads(), SizeIs(2));
  EXPECT_EQ(stats().retries, 0U);
}

TEST_F(ProxyTest, UsesNoConnectionThatTheUpstreamHasClosed) {
  // The answer and the end arrive in one segment, so that both are pending when the next request,
  // which is also pending, looks for a connection. It would not be retried.
  StartUpstream([](test::TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\nx");
    const int on = 1;
    setsockopt(connection.fd(), IPPROTO_TCP, TCP_CORK, &on, sizeof on);
    connection.Send(kOk);
  });
  StartProxy();
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx";
  for (int i = 1; i <= 20; ++i) {
    test::TcpConnection client(port_);
    client.Send(post + post);
    for (int answer = 1; answer <= 2; ++answer) {
      ASSERT_THAT(client.ReadThrough("\r\n\r\nok"), HasSubstr("200 OK")) << i << ", " << answer;
    }
  }
  EXPECT_EQ(upstream_->accepted(), 40);
}

TEST_F(ProxyTest, IgnoresAnAnswerNobodyAskedFor) {
  StartUpstream([](test::TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    connection.Send(std::string(kOk) + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
    connection.ReadAll();
  });
  StartProxy();
  test::HttpClient client(port_);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Get("/").body, "ok");
}

TEST_F(ProxyTest, AnswersForAnUpstreamThatDoesNot) {
  StartUpstream([](test::TcpConnection& connection) { connection.ReadAll(); });
  options_.timeouts.stall = milliseconds(200);
  StartProxy();
  test::HttpClient client(port_);
  const auto response = client.Get("/");
  EXPECT_EQ(response.status, 504);
  EXPECT_THAT(response.body, HasSubstr("\"error\":\"Gateway Timeout\""));
  EXPECT_EQ(stats().upstream_timeouts, 1U);
  EXPECT_FALSE(options_.upstreams[0].health->up());
}

// A client that sends a byte now and then would hold an upstream connection forever.
TEST_F(ProxyTest, ABodyThatTricklesInEarnsNoTime) {
  StartUpstream([](test::TcpConnection& connection) { connection.ReadAll(); });
  options_.timeouts.stall = milliseconds(400);
  StartProxy();
  test::TcpConnection client(port_);
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  std::atomic<bool> over = false;
  std::thread sender([&] {
    for (int i = 0; i < 100 && !over; ++i) {
      try {
        client.Send("x");
      } catch (const std::exception&) {
        return;  // the proxy has closed
      }
      std::this_thread::sleep_for(milliseconds(50));
    }
  });
  const std::string answer = client.ReadThrough("\r\n\r\n");
  over = true;
  sender.join();
  EXPECT_THAT(answer, HasSubstr("408 Request Timeout"));
}

// Likewise one that reads an answer a little at a time. It gets no more time for that, the upstream
// is not blamed for it, and its connection is closed.
TEST_F(ProxyTest, AClientThatTakesAnAnswerTooSlowlyIsClosed) {
  const auto over = std::make_shared<std::atomic<bool>>(false);
  StartUpstream([over](test::TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
    const std::string piece(65'536, 'x');
    try {
      while (true) connection.Send(piece);
    } catch (const std::exception&) {
      *over = true;
      throw;
    }
  });
  options_.timeouts.stall = milliseconds(400);
  StartProxy();
  test::TcpConnection client(port_);
  const int small = 4096;
  setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  std::array<char, 512> some{};
  // 10 KiB a second, for 20 seconds.
  for (int i = 0; i < 400 && !*over; ++i) {
    if (recv(client.fd(), some.data(), some.size(), MSG_DONTWAIT) == 0) break;
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_TRUE(*over);
  EXPECT_EQ(stats().rejected, 1U);
  EXPECT_EQ(stats().upstream_timeouts, 0U);
}

TEST_F(ProxyTest, RefusesAMalformedAnswer) {
  AnswerAlways("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok");
  StartProxy();
  test::HttpClient client(port_);
  EXPECT_EQ(client.Get("/").status, 502);
}

TEST_F(ProxyTest, CutsTheClientOffWhenAResponseBreaksOff) {
  StartUpstream([](test::TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
  });
  StartProxy();
  test::TcpConnection client(port_);
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string all = client.ReadAll();
  EXPECT_THAT(all, HasSubstr("Content-Length: 100\r\n"));
  EXPECT_TRUE(all.ends_with("\r\n\r\npart")) << all;
}

TEST_F(ProxyTest, PassesAnEarlyRefusalOfAnUploadOn) {
  StartUpstream([](test::TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    connection.Send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig");
    connection.FinishSending();
    connection.ReadAll();
  });
  StartProxy();
  test::TcpConnection client(port_);
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n");
  client.Send(std::string(1'000'000, 'x'));
  EXPECT_THAT(client.ReadThrough("big"), HasSubstr("413 Content Too Large"));
}

TEST_F(ProxyTest, LetsAnUnfinishedUploadReachNobodyAsFinished) {
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  const auto got = std::make_shared<std::string>();
  StartUpstream([ended, got](test::TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    *got = connection.ReadAll();
    *ended = true;
  });
  StartProxy();
  {
    test::TcpConnection client(port_);
    client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\npart");
  }
  ASSERT_TRUE(test::WaitUntil([&] { return ended->load(); }));
  EXPECT_EQ(*got, "part");
  EXPECT_TRUE(test::WaitUntil([&] { return pool_->reactor(0).stats().open == 0; }));
}

TEST_F(ProxyTest, HangsUpOnAClientThatSendsItsHeadTooSlowly) {
  AnswerAlways(kOk);
  options_.timeouts.header = milliseconds(200);
  StartProxy();
  test::TcpConnection client(port_);
  client.Send("GET / HTTP/1.1\r\n");
  EXPECT_THAT(client.ReadAll(), HasSubstr("408 Request Timeout"));
}

TEST_F(ProxyTest, HangsUpOnAnIdleClient) {
  AnswerAlways(kOk);
  options_.timeouts.idle = milliseconds(200);
  StartProxy();
  test::TcpConnection client(port_);
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(client.ReadAll().ends_with("ok"));
}

TEST_F(ProxyTest, FinishesWhatItBeganWhenItDrains) {
  const auto asked = std::make_shared<std::atomic<bool>>(false);
  const auto answer = std::make_shared<std::atomic<bool>>(false);
  StartUpstream([asked, answer](test::TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    *asked = true;
    if (!test::WaitUntil([&] { return answer->load(); })) return;
    connection.Send(kOk);
  });
  StartProxy();
  test::TcpConnection idle(port_);
  test::HttpClient busy(port_);
  busy.SendRaw("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(test::WaitUntil([&] { return asked->load(); }));
  std::thread drain([&] { EXPECT_TRUE(pool_->Drain(std::chrono::seconds(10))); });
  EXPECT_EQ(idle.ReadAll(), "");
  *answer = true;
  const auto response = busy.ReadResponse();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.Header("Connection"), "close");
  drain.join();
}

}  // namespace
}  // namespace weir::proxy
