#include "support/envoy_server.h"

#include <stdexcept>

#include "support/paths.h"
#include "support/tcp_connection.h"
#include "support/wait.h"

namespace weir::test {
namespace {

bool Listens(std::uint16_t port) {
  try {
    const TcpConnection connection(port);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

}  // namespace

EnvoyServer::EnvoyServer(std::string_view config, std::uint16_t port) {
  const RunResult fetched =
      RunProgram({SourcePath("tests/support/envoy/fetch.sh")}, {}, std::chrono::minutes(5));
  if (fetched.exit_code != 0) throw std::runtime_error(fetched.error_output);
  dir_.Write("envoy.yaml", config);
  process_ = std::make_unique<ChildProcess>(std::vector<std::string>{
      SourcePath("build/envoy/envoy"), "--config-path", (dir_ / "envoy.yaml").string(),
      "--log-level", "error", "--concurrency", "1", "--disable-hot-restart"});
  const bool up = WaitUntil([&] { return Listens(port) || !process_->running(); });
  if (!up || !process_->running()) {
    throw std::runtime_error("Envoy does not start: " + process_->error_output());
  }
}

}  // namespace weir::test
