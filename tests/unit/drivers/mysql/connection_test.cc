// What a malicious server can make us reveal. Real servers are in tests/integration/drivers.

#include "drivers/mysql/connection.h"

#include <gmock/gmock.h>

#include <mutex>
#include <string>

#include "support/tcp_server.h"

namespace weir::mysql {
namespace {

using namespace std::string_literals;

std::string Packet(char number, const std::string& payload) {
  return std::string{static_cast<char>(payload.size()), 0, 0, number} + payload;
}

/// A server's greeting, which requests this authentication plugin.
std::string Greeting(const std::string& plugin) {
  return "\x0a"s + "8.0.30\0"s + "\1\0\0\0"s + "12345678\0"s + "\0\xa2"s + "\x2d"s + "\2\0"s +
         "\x0a\0"s + "\x15"s + std::string(10, '\0') + "123456789012\0"s + plugin + "\0"s;
}

std::string Read(test::TcpConnection& connection) {
  const std::string head = connection.Read(4);
  return connection.Read(static_cast<unsigned char>(head[0]) +
                         256U * static_cast<unsigned char>(head[1]));
}

/// All bytes a client sends to a server that greets with one plugin and then requests another.
std::string Said(const std::string& first, const std::string& second) {
  std::mutex mutex;
  std::string said;
  {
    test::TcpServer server([&](test::TcpConnection& connection) {
      const auto hear = [&] {
        const std::string words = Read(connection);
        const std::lock_guard lock(mutex);
        said += words;
      };
      connection.Send(Packet(0, Greeting(first)));
      hear();
      connection.Send(Packet(2, "\xfe" + second + "\0"s + "12345678901234567890\0"s));
      hear();
    });
    ConnectionOptions options;
    options.url = "mysql://weir:topsecret@127.0.0.1:" + std::to_string(server.port()) + "/weir";
    Connection connection(options);
    EXPECT_FALSE(connection.Run("SELECT 1").status.ok());
  }
  return said;
}

TEST(Connection, AServerThatAsksForThePasswordInTheClearDoesNotGetIt) {
  EXPECT_THAT(Said("mysql_native_password", "mysql_native_password"), ::testing::HasSubstr("weir"));
  for (const std::string plugin : {"mysql_clear_password", "dialog", "mysql_old_password"}) {
    EXPECT_THAT(Said(plugin, plugin), ::testing::Not(::testing::HasSubstr("topsecret"))) << plugin;
    EXPECT_THAT(Said("mysql_native_password", plugin),
                ::testing::Not(::testing::HasSubstr("topsecret")))
        << plugin;
  }
}

}  // namespace
}  // namespace weir::mysql
