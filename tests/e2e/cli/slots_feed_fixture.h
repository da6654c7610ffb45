#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "e2e/cli/exit_codes.h"
#include "e2e/service/fixture.h"
#include "support/paths.h"

namespace weir::test {

// Of `slots import`, which differs.
constexpr int kFailed = 1;  // also: the service cannot be reached
constexpr int kSomeRefused = 3;

constexpr const char* kAt = "2030-06-03T09:00:00Z";

class SlotsFeed : public ServiceTest {
 protected:
  void SetUp() override {
    Serve({});
    ASSERT_EQ(Slots({"config", "set", "bank", "--window", "4s", "--max", "100"}).exit_code, kOk);
  }

  RunResult Slots(std::vector<std::string> words) {
    words.insert(words.begin(), {Program(), "slots"});
    return RunProgram(words, {.env = {"WEIR_URL=http://127.0.0.1:" + std::to_string(port_)}});
  }
  RunResult Import(const std::string& name, const std::string& text) {
    const std::string feed = dir_.Write(name, text).string();
    return Slots({"import", feed, "--config", "bank", "--at", kAt, "--quiet"});
  }
  std::string Results(const std::string& name) {
    std::ifstream in(dir_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Leaves what an import of `name` that was killed after `answered` events would leave.
  void Interrupt(const std::string& name, const std::string& text, std::size_t answered) {
    // The results cannot replace a folder.
    std::filesystem::create_directory(dir_ / "feed.slots.csv");
    EXPECT_EQ(Import(name, text).exit_code, kFailed);
    std::filesystem::remove(dir_ / "feed.slots.csv");
    const std::string part = Results("feed.slots.csv.part");
    std::size_t end = 0;
    for (std::size_t i = 0; i <= answered; ++i) end = part.find('\n', end) + 1;
    dir_.Write("feed.slots.csv.part", part.substr(0, end + 20));
  }
  int StatusOf(const std::string& event) { return Client().Get("/api/v1/slots/" + event).status; }
};

}  // namespace weir::test
