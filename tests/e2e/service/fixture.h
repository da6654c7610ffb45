#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "support/http_client.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {

/// `weir serve` with only its HTTP endpoint unless specified, on a separate data folder.
class ServiceTest : public ::testing::Test {
 protected:
  void Serve(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"serve", "--http", "127.0.0.1:0", "--data",
                                          (dir_ / "data").string()};
    for (const char* door : {"--grpc", "--resp"}) {
      if (std::find(more.begin(), more.end(), door) != more.end()) continue;
      arguments.insert(arguments.end(), {door, "off"});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    weir_.emplace(arguments);
    port_ = weir_->Port("http");
  }

  /// With policies from a file, whose path is returned.
  std::filesystem::path ServePolicies(std::string_view yaml) {
    const auto file = dir_.Write("policies.yaml", yaml);
    Serve({"--policies", file.string()});
    return file;
  }

  HttpClient Client() const { return HttpClient(port_); }

  HttpResponse Check(std::string_view body, std::string_view target = "/v1/check") {
    HttpClient client = Client();
    return client.Post(target, body);
  }

  /// A time for expiresAt that a test can wait for.
  static std::string Soon() {
    const std::time_t at = std::time(nullptr) + 3;
    std::tm utc = {};
    gmtime_r(&at, &utc);
    char text[32] = {};
    std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text;
  }

  /// Resident memory of the program, in bytes.
  std::size_t Resident() {
    std::ifstream statm("/proc/" + std::to_string(weir_->process().pid()) + "/statm");
    std::size_t total = 0;
    std::size_t resident = 0;
    statm >> total >> resident;
    return resident * 4096;
  }

  TempDir dir_;
  std::optional<WeirProcess> weir_;
  std::uint16_t port_ = 0;
};

}  // namespace weir::test
