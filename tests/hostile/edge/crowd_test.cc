// Idle connections to the proxy take the file descriptors that upstreams, files and health checks
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
  const auto rest = Args({"--admin", "127.0.0.1:0", "--per-ip", "1000/1h"});
  args.insert(args.end(), rest.begin(), rest.end());
  ChildProcess weir(args);
  const std::uint16_t proxy = PortOf(weir, "proxy");
  const std::uint16_t admin = PortOf(weir, "admin");
  HttpClient before(proxy);
  EXPECT_EQ(before.Get("/").status, 200);
  std::vector<std::unique_ptr<TcpConnection>> crowd;
  for (int i = 0; i < 700; ++i) crowd.push_back(std::make_unique<TcpConnection>(proxy));
  EXPECT_EQ(HttpClient(admin).Get("/healthz").status, 200);
  EXPECT_EQ(before.Get("/").status, 200) << "an upstream can be reached";
  crowd.clear();
  EXPECT_EQ(weir.Terminate(), 0);
}

}  // namespace
}  // namespace weir::test
