#include <gmock/gmock.h>

#include "integration/proxy/fixture.h"
#include "support/wait.h"

namespace weir::proxy {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(ProxyTest, PassesRequestAndResponseOn) {
  AnswerAlways("HTTP/1.1 201 Made\r\nX-App: yes\r\nContent-Length: 2\r\n\r\nok");
  StartProxy();
  test::HttpClient client(port_);
  const auto response =
      client.Get("/a?b=c", {{"traceparent", "00-ab-cd-01"}, {"X-Forwarded-For", "6.6.6.6"}});
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.body, "ok");
  EXPECT_EQ(response.Header("X-App"), "yes");
  ASSERT_THAT(heads(), SizeIs(1));
  EXPECT_THAT(heads()[0], HasSubstr("GET /a?b=c HTTP/1.1\r\n"));
  EXPECT_THAT(heads()[0], HasSubstr("traceparent: 00-ab-cd-01\r\n"));
  EXPECT_THAT(heads()[0], HasSubstr("X-Forwarded-For: 127.0.0.1\r\n"));
  EXPECT_THAT(heads()[0], Not(HasSubstr("6.6.6.6")));
}

TEST_F(ProxyTest, KeepsConnectionsAliveOnBothSides) {
  AnswerAlways("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  StartProxy();
  test::HttpClient one(port_);
  test::HttpClient two(port_);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(one.Get("/").body, "ok");
    EXPECT_EQ(two.Get("/").body, "ok");
  }
  EXPECT_EQ(upstream_->accepted(), 1);
  EXPECT_EQ(pool_->reactor(0).stats().accepted, 2U);
}

TEST_F(ProxyTest, AnswersPipelinedRequestsInOrder) {
  StartUpstream([](test::TcpConnection& connection) {
    while (true) {
      const std::string head = connection.ReadThrough("\r\n\r\n");
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + head.substr(5, 1));
    }
  });
  StartProxy();
  test::HttpClient client(port_);
  std::string requests;
  for (const char name : std::string_view("abcdefgh")) {
    requests += std::string("GET /") + name + " HTTP/1.1\r\nHost: x\r\n\r\n";
  }
  client.SendRaw(requests);
  std::string answers;
  for (int i = 0; i < 8; ++i) answers += client.ReadResponse().body;
  EXPECT_EQ(answers, "abcdefgh");
}

TEST_F(ProxyTest, StreamsAChunkedRequestUnchangedButForTrailers) {
  const std::string sent = "5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 1\r\n\r\n";
  const std::string body = "5;x=y\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
  const auto received = std::make_shared<std::string>();
  StartUpstream([this, received, size = body.size()](test::TcpConnection& connection) {
    Remember(connection.ReadThrough("\r\n\r\n"));
    *received = connection.Read(size);
    connection.Send("HTTP/1.1 204 No Content\r\n\r\n");
    connection.ReadThrough("\r\n\r\n");
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext");
  });
  StartProxy();
  test::HttpClient client(port_);
  client.SendRaw("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (const char byte : sent) client.SendRaw({&byte, 1});
  EXPECT_EQ(client.ReadResponse().status, 204);
  EXPECT_EQ(*received, body);
  EXPECT_THAT(heads()[0], HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_EQ(client.Get("/").body, "next");
}

TEST_F(ProxyTest, StreamsAChunkedResponseWithTrailersUnchanged) {
  const std::string body = "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n";
  AnswerAlways("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body);
  StartProxy();
  test::TcpConnection client(port_);
  for (int i = 0; i < 2; ++i) {
    client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(client.ReadThrough("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
    EXPECT_EQ(client.Read(body.size()), body);
  }
  EXPECT_EQ(upstream_->accepted(), 1);
}

TEST_F(ProxyTest, KnowsResponsesWithoutBody) {
  StartUpstream([](test::TcpConnection& connection) {
    while (true) {
      const std::string head = connection.ReadThrough("\r\n\r\n");
      if (head.starts_with("HEAD")) {
        connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
      } else if (head.starts_with("GET /304")) {
        connection.Send("HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n");
      } else {
        connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nend");
      }
    }
  });
  StartProxy();
  test::TcpConnection client(port_);
  client.Send(
      "HEAD / HTTP/1.1\r\nHost: x\r\n\r\nGET /304 HTTP/1.1\r\nHost: x\r\n\r\n"
      "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string all = client.ReadAll();
  EXPECT_THAT(all, HasSubstr("HTTP/1.1 304 Not Modified\r\n"));
  EXPECT_TRUE(all.ends_with("\r\n\r\nend")) << all;
}

TEST_F(ProxyTest, LetsTheUpstreamAskForTheBody) {
  StartUpstream([](test::TcpConnection& connection) {
    const std::string head = connection.ReadThrough("\r\n\r\n");
    if (head.find("Expect: 100-continue\r\n") == std::string::npos) return;
    connection.Send("HTTP/1.1 100 Continue\r\n\r\n");
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + connection.Read(5));
  });
  StartProxy();
  test::TcpConnection client(port_);
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.ReadThrough("\r\n\r\n"), HasSubstr("HTTP/1.1 100 Continue"));
  client.Send("hello");
  EXPECT_THAT(client.ReadThrough("hello"), HasSubstr("HTTP/1.1 200 OK"));
}

TEST_F(ProxyTest, PassesAResponseThatEndsWithTheConnection) {
  StartUpstream([](test::TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    connection.Send("HTTP/1.1 200 OK\r\n\r\nuntil the end");
  });
  StartProxy();
  test::TcpConnection client(port_);
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string all = client.ReadAll();
  EXPECT_THAT(all, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(all.ends_with("\r\n\r\nuntil the end")) << all;
}

TEST_F(ProxyTest, ServesHttp10Clients) {
  AnswerAlways("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  StartProxy();
  test::TcpConnection client(port_);
  client.Send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(client.ReadThrough("ok"), HasSubstr("Connection: keep-alive\r\n"));
  client.Send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.ReadAll(), HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(heads()[0], HasSubstr("GET / HTTP/1.0\r\n"));
}

TEST_F(ProxyTest, AnswersAClientThatSendsNoMore) {
  AnswerAlways("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  StartProxy();
  test::TcpConnection client(port_);
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  client.FinishSending();
  EXPECT_TRUE(client.ReadAll().ends_with("ok"));
}

TEST_F(ProxyTest, TakesUpstreamsInTurn) {
  test::TcpServer other([](test::TcpConnection& connection) {
    while (true) {
      connection.ReadThrough("\r\n\r\n");
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb");
    }
  });
  AnswerAlways("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
  AddUpstream(upstream_->port());
  AddUpstream(other.port());
  StartProxy();
  test::HttpClient client(port_);
  std::string answers;
  for (int i = 0; i < 6; ++i) answers += client.Get("/").body;
  EXPECT_EQ(answers, "ababab");
}

TEST_F(ProxyTest, HoldsNoMoreOfABodyThanItsBuffers) {
  // The client does not read. What the upstream can send is then in kernel buffers and ours.
  const auto sent = std::make_shared<std::atomic<std::size_t>>(0);
  StartUpstream([sent](test::TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
    const std::string block(65'536, 'x');
    while (true) {
      connection.Send(block);
      *sent += block.size();
    }
  });
  StartProxy();
  test::TcpConnection client(port_);
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  std::size_t before = 1;
  // Until nothing has moved for half a second.
  while (before != *sent) {
    before = *sent;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  EXPECT_LT(*sent, 32U << 20U);
  EXPECT_GT(client.Read(1 << 20U).size(), 0U);
}

}  // namespace
}  // namespace weir::proxy
