#include <gmock/gmock.h>

#include "integration/proxy/fixture.h"
#include "support/wait.h"

namespace weir::proxy {
namespace {

using ::testing::HasSubstr;

constexpr const char* kUpgrade =
    "GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
constexpr const char* kSwitch =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

TEST_F(ProxyTest, BecomesATunnelAfterAnUpgrade) {
  StartUpstream([](test::TcpConnection& connection) {
    const std::string head = connection.ReadThrough("\r\n\r\n");
    if (head.find("Upgrade: websocket\r\n") == std::string::npos) return;
    connection.Send(std::string(kSwitch) + "hi");  // the first bytes arrive along with the head
    while (true) connection.Send(connection.Read(4));
  });
  StartProxy(5);
  test::TcpConnection client(port_);
  client.Send(std::string(kUpgrade) + "ping");
  const std::string head = client.ReadThrough("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("101 Switching Protocols"));
  EXPECT_THAT(head, HasSubstr("Upgrade: websocket\r\nConnection: upgrade\r\n"));
  EXPECT_EQ(client.Read(6), "hiping");
  for (int i = 0; i < 100; ++i) {
    client.Send(std::string("\0\r\n\xff", 4));
    ASSERT_EQ(client.Read(4), std::string("\0\r\n\xff", 4));
  }
  EXPECT_EQ(stats().tunnels, 1U);
}

TEST_F(ProxyTest, PassesTheEndOfEachDirectionOn) {
  StartUpstream([](test::TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    connection.Send(kSwitch);
    connection.Send("got " + connection.ReadAll());
  });
  StartProxy();
  test::TcpConnection client(port_);
  client.Send(kUpgrade);
  client.ReadThrough("\r\n\r\n");
  client.Send("all of it");
  client.FinishSending();
  EXPECT_EQ(client.ReadAll(), "got all of it");
  EXPECT_TRUE(test::WaitUntil([&] { return pool_->reactor(0).stats().open == 0; }));
}

TEST_F(ProxyTest, CarriesMuchThroughATunnelBothWays) {
  constexpr std::size_t kSize = 8'000'000;
  StartUpstream([](test::TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    connection.Send(kSwitch);
    for (std::size_t passed = 0; passed < kSize; passed += 1'000) {
      connection.Send(connection.Read(1'000));
    }
  });
  StartProxy();
  test::TcpConnection client(port_);
  client.Send(kUpgrade);
  client.ReadThrough("\r\n\r\n");
  std::thread sender([&] { client.Send(std::string(kSize, 'x')); });
  std::size_t got = 0;
  while (got < kSize) got += client.Read(100'000).size();
  sender.join();
  EXPECT_EQ(got, kSize);
}

TEST_F(ProxyTest, RefusesASwitchNobodyAskedFor) {
  AnswerAlways(kSwitch);
  StartProxy();
  test::HttpClient client(port_);
  EXPECT_EQ(client.Get("/").status, 502);
}

TEST_F(ProxyTest, PassesARefusedUpgradeOn) {
  AnswerAlways("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  StartProxy();
  test::HttpClient client(port_);
  client.SendRaw(kUpgrade);
  EXPECT_EQ(client.ReadResponse().status, 403);
  EXPECT_EQ(client.Get("/").status, 403);
}

TEST_F(ProxyTest, EndsATunnelWhenItDrains) {
  StartUpstream([](test::TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    connection.Send(kSwitch);
    connection.ReadAll();
  });
  options_.timeouts.linger = std::chrono::milliseconds(200);
  StartProxy();
  test::TcpConnection client(port_);
  client.Send(kUpgrade);
  client.ReadThrough("\r\n\r\n");
  EXPECT_TRUE(pool_->Drain(std::chrono::seconds(10)));
  EXPECT_EQ(client.ReadAll(), "");
}

}  // namespace
}  // namespace weir::proxy
