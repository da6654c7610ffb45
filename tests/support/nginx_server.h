#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "support/child_process.h"
#include "support/temp_dir.h"

namespace weir::test {

/// A real nginx on a free port, with one worker and all its files in a temporary directory.
///
/// As thread-safe as ChildProcess.
class NginxServer {
 public:
  /// `server` is the content of the server block besides `listen`; DIR in it is replaced by dir().
  explicit NginxServer(std::string_view server);

  std::uint16_t port() const noexcept { return port_; }
  const TempDir& dir() const noexcept { return dir_; }

  /// SIGKILL, and a restart on the same port.
  void Kill();
  void Restart();

  /// Lines of the access log so far, which nginx writes without buffering.
  std::size_t AccessLogLines() const;
  /// A line for each answer: seconds since the epoch to the millisecond, status, peer, request.
  std::string AccessLog() const;

 private:
  TempDir dir_;
  std::uint16_t port_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace weir::test
