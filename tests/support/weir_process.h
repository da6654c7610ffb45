#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/child_process.h"

namespace weir::test {

/// The program `weir` of this build, run by a test: `WeirProcess weir({"serve", "--http",
/// "127.0.0.1:0"}); HttpClient client(weir.Port("http"));`. It ends with this object.
///
/// As thread-safe as ChildProcess.
class WeirProcess {
 public:
  explicit WeirProcess(std::vector<std::string> args, const SpawnOptions& options = {});

  /// Waits until the program prints `listening <door> <address>:<port>`; returns the port. Throws
  /// std::runtime_error with the program's output if it does not.
  std::uint16_t Port(std::string_view door);

  ChildProcess& process() noexcept { return process_; }

 private:
  ChildProcess process_;
};

}  // namespace weir::test
