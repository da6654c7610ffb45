#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "support/child_process.h"
#include "support/temp_dir.h"

namespace weir::test {

/// A real Envoy with one worker. It ends with this object, and its files with it. The program
/// itself is fetched once (tests/support/envoy/fetch.sh).
///
/// Throws std::runtime_error with Envoy's output if it does not start. As thread-safe as
/// ChildProcess; make it on the test's own thread.
class EnvoyServer {
 public:
  /// `config` is the whole configuration; it must include a listener on `port`.
  EnvoyServer(std::string_view config, std::uint16_t port);

  /// What Envoy has logged: errors only.
  std::string log() const { return process_->error_output(); }

 private:
  TempDir dir_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace weir::test
