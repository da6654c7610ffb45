#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::test {

/// Several `weir serve` on one store, with the same policies and separate data folders.
class Nodes {
 public:
  Nodes(std::size_t count, const std::string& store, std::string_view policies,
        const std::vector<std::string>& more = {}) {
    const auto file = dir_.Write("policies.yaml", policies);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::string> arguments = {"serve",
                                            "--http",
                                            "127.0.0.1:0",
                                            "--grpc",
                                            "off",
                                            "--resp",
                                            "off",
                                            "--store",
                                            store,
                                            "--policies",
                                            file.string(),
                                            "--data",
                                            (dir_ / ("data" + std::to_string(i))).string()};
      arguments.insert(arguments.end(), more.begin(), more.end());
      processes_.push_back(std::make_unique<WeirProcess>(arguments));
    }
    for (auto& process : processes_) ports_.push_back(process->Port("http"));
  }

  const std::vector<std::uint16_t>& ports() const { return ports_; }
  WeirProcess& operator[](std::size_t index) { return *processes_[index]; }
  std::size_t size() const { return processes_.size(); }

 private:
  TempDir dir_;
  std::vector<std::unique_ptr<WeirProcess>> processes_;
  std::vector<std::uint16_t> ports_;
};

}  // namespace weir::test
