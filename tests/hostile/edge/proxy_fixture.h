#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "support/http_client.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {

/// `weir proxy` in front of an upstream that records its requests.
class ProxyProgramTest : public ::testing::Test {
 protected:
  ProxyProgramTest()
      : upstream_([this](TcpConnection& connection) {
          while (true) {
            std::string got = connection.ReadThrough("\r\n\r\n");
            if (got.find("Transfer-Encoding: chunked") != std::string::npos) {
              got += connection.ReadThrough("0\r\n");
              got += connection.ReadThrough("\r\n");
            }
            Answer(connection, got);
          }
        }) {}

  virtual void Answer(TcpConnection& connection, const std::string& request) {
    Remember(request);
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nPAY");
  }

  void Remember(const std::string& request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
  }
  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  std::vector<std::string> Args(const std::vector<std::string>& more,
                                const std::string& data = "proxy") {
    std::vector<std::string> args = {"proxy",
                                     "--upstream",
                                     "http://127.0.0.1:" + std::to_string(upstream_.port()),
                                     "--listen",
                                     "127.0.0.1:0",
                                     "--data",
                                     (dir_ / data).string()};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }

  void Start(const std::string& policies, const std::vector<std::string>& more = {}) {
    std::vector<std::string> args = Args(more);
    if (!policies.empty()) {
      args.insert(args.end(), {"--policies", dir_.Write("policies.yaml", policies).string()});
    }
    proxy_.emplace(args);
    port_ = proxy_->Port("proxy");
  }

  std::mutex mutex_;
  std::vector<std::string> requests_;
  TempDir dir_;
  TcpServer upstream_;
  std::optional<WeirProcess> proxy_;
  std::uint16_t port_ = 0;
};

}  // namespace weir::test
