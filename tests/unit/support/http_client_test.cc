#include "support/http_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "support/ports.h"

namespace weir::test {
namespace {

// Accepts one connection, reads until `expected` has arrived, writes `answer`, closes.
class OneShotServer {
 public:
  OneShotServer(std::string expected, std::string answer) : port_(FreePort()) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_, 1) != 0) {
      throw std::runtime_error("cannot listen");
    }
    thread_ = std::thread([this, expected = std::move(expected), answer = std::move(answer)] {
      const int fd = accept(listener_, nullptr, nullptr);
      char byte = 0;
      while (received_.find(expected) == std::string::npos && read(fd, &byte, 1) == 1) {
        received_ += byte;
      }
      EXPECT_EQ(write(fd, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
      close(fd);
    });
  }
  ~OneShotServer() {
    if (thread_.joinable()) thread_.join();
    close(listener_);
  }
  OneShotServer(const OneShotServer&) = delete;
  OneShotServer& operator=(const OneShotServer&) = delete;

  std::uint16_t port() const { return port_; }
  std::string received() {
    thread_.join();
    return received_;
  }

 private:
  std::uint16_t port_;
  int listener_ = -1;
  std::string received_;
  std::thread thread_;
};

TEST(HttpClient, SendsHostLengthAndBodyAndReadsTheAnswer) {
  OneShotServer server("{}",
                       "HTTP/1.1 429 Too Many Requests\r\nRetry-After:  3 \r\n"
                       "Content-Length: 4\r\n\r\nslow");
  HttpClient client(server.port());
  const HttpResponse response = client.Post("/v1/check?x=1", "{}", {{"X-A", "b"}});
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.Header("retry-after"), "3");
  EXPECT_FALSE(response.HasHeader("X-A"));
  EXPECT_EQ(response.body, "slow");
  EXPECT_EQ(server.received(),
            "POST /v1/check?x=1 HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) +
                "\r\nX-A: b\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
}

TEST(HttpClient, ReadsPipelinedAnswersOneByOne) {
  OneShotServer server("END",
                       "HTTP/1.1 100 Continue\r\n\r\n"
                       "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"
                       "HTTP/1.1 204 No Content\r\n\r\n"
                       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "3\r\nbcd\r\n1;x\r\ne\r\n0\r\nTrailer: t\r\n\r\n"
                       "HTTP/1.1 200 OK\r\n\r\nrest");
  HttpClient client(server.port());
  client.SendRaw("anything END");
  EXPECT_EQ(client.ReadResponse().body, "a");
  EXPECT_EQ(client.ReadResponse().status, 204);
  EXPECT_EQ(client.ReadResponse().body, "bcde");
  EXPECT_EQ(client.ReadResponse().body, "rest");
}

TEST(HttpClient, HeadHasNoBody) {
  OneShotServer server("\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
  HttpClient client(server.port());
  EXPECT_EQ(client.Send("HEAD", "/").body, "");
}

TEST(HttpClient, AnAnswerCutShortIsAnError) {
  OneShotServer server("\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  HttpClient client(server.port());
  EXPECT_THROW(client.Get("/"), std::runtime_error);
}

TEST(TcpConnection, ConnectingToAClosedPortIsAnError) {
  EXPECT_THROW(TcpConnection{FreePort()}, std::runtime_error);
}

}  // namespace
}  // namespace weir::test
