#pragma once

// A `weir serve` on a shared store, for tests that kill it.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/child_process.h"
#include "support/ports.h"
#include "support/weir_process.h"

namespace weir::test {

/// A process that can be killed and restarted on the same port.
class LeaseNode {
 public:
  LeaseNode(std::string store, std::string policies, std::string data)
      : port_(FreePort()),
        arguments_{"serve",
                   "--http",
                   "127.0.0.1:" + std::to_string(port_),
                   "--grpc",
                   "off",
                   "--resp",
                   "off",
                   "--store",
                   std::move(store),
                   "--policies",
                   policies,
                   "--data",
                   std::move(data),
                   "--store-timeout",
                   "250ms",
                   "--threads",
                   "1"} {
    Start();
  }
  void Start() {
    process_ = std::make_unique<WeirProcess>(arguments_);
    static_cast<void>(process_->Port("http"));
  }
  std::uint16_t port() const { return port_; }
  ChildProcess& process() { return process_->process(); }

 private:
  const std::uint16_t port_;
  const std::vector<std::string> arguments_;
  std::unique_ptr<WeirProcess> process_;
};

}  // namespace weir::test
