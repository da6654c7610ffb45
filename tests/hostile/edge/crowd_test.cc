// Idle connections to the proxy use up the file descriptors that upstreams, files and health checks
// need.

#include <memory>

#include "hostile/edge/proxy_fixture.h"
#include "support/child_process.h"
#include "support/paths.h"

namespace weir::test {
namespace {

class Crowd : public ProxyProgramTest {
 protected:
  static std::uint16_t PortOf(ChildProcess& weir, const std::string& door) {
    const auto line = weir.WaitForLine("listening " + door);
    EXPECT_TRUE(line.has_value()) << weir.error_output();
    return line ? static_cast<std::uint16_t>(std::stoi(line->substr(line->rfind(':') + 1))) : 0;
  }
};

TEST_F(Crowd, WithFewDescriptorsClientsAreServedAndHealthIsAnswered) {
  std::vector<std::string> args = {"prlimit", "--nofile=640:640", Program()};
  // The crowd stays longer than this test waits for an answer.
  const auto rest = Args({"--admin", "127.0.0.1:0", "--per-ip", "1000/1h", "--header-timeout",
                          "10m", "--threads", "1"});
  args.insert(args.end(), rest.begin(), rest.end());
  ChildProcess weir(args);
  const std::uint16_t proxy = PortOf(weir, "proxy");
  const std::uint16_t admin = PortOf(weir, "admin");
  TcpConnection before(proxy);  // has no upstream yet
  std::vector<std::unique_ptr<TcpConnection>> crowd;
  for (int i = 0; i < 700; ++i) crowd.push_back(std::make_unique<TcpConnection>(proxy));
  // Connections are accepted in order, so all the others have been accepted now.
  EXPECT_EQ(crowd.back()->ReadAll(), "") << "one too many is closed, and does not wait";
  EXPECT_EQ(HttpClient(admin).Get("/healthz").status, 200);
  before.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(before.ReadThrough("\r\n"), ::testing::HasSubstr(" 200 "));
  crowd.clear();
  EXPECT_EQ(weir.Terminate(), 0);
}

}  // namespace
}  // namespace weir::test
