// weir bench and weir simulate: what they count is what the service counted.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <fstream>
#include <string>

#include "support/child_process.h"
#include "support/http_client.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Bench : public ::testing::Test {
 protected:
  std::uint64_t NumberIn(const std::string& json, const std::string& name) {
    const std::size_t at = json.find("\"" + name + "\":");
    std::uint64_t number = 0;
    if (at == std::string::npos) return number;
    std::from_chars(json.data() + at + name.size() + 3, json.data() + json.size(), number);
    return number;
  }

  RunResult Run(const std::string& door, std::vector<std::string> more) {
    std::vector<std::string> words = {WEIR_PROGRAM,
                                      "bench",
                                      door,
                                      "--address",
                                      "127.0.0.1:" + std::to_string(weir_.Port(door)),
                                      "--json",
                                      "--seconds",
                                      "0.5"};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(words);
  }

  TempDir dir_;
  WeirProcess weir_{{"serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--resp",
                     "127.0.0.1:0", "--data", (dir_ / "data").string(), "--policies",
                     dir_.Write("p.yaml",
                                "policies: [{name: few, match: {user: bench-0}, quota: "
                                "{fixed_window: {limit: 5, window: 100d}}}]")
                         .string()}};
};

TEST_F(Bench, EveryDoorIsLoadedInBothWays) {
  std::uint64_t sum = 0;
  for (const std::string door : {"http", "grpc", "resp"}) {
    const RunResult closed = Run(door, {"-c", "4", "-p", "4", "-t", "2"});
    EXPECT_EQ(closed.exit_code, 0) << closed.error_output;
    EXPECT_GT(NumberIn(closed.output, "answered"), 0U) << door;
    EXPECT_EQ(NumberIn(closed.output, "errors"), 0U) << door;
    EXPECT_GT(NumberIn(closed.output, "p99"), 0U) << door;
    const RunResult open = Run(door, {"-c", "4", "--rate", "200"});
    const std::uint64_t answered = NumberIn(open.output, "answered");
    // Half a second at 200 a second, and never more, however fast the service is; fewer if the
    // machine is so busy that the generator itself is late.
    EXPECT_LE(answered + NumberIn(open.output, "unanswered"), 101U) << door;
    EXPECT_GT(answered, 0U) << door;
    sum += NumberIn(closed.output, "answered") + answered;
  }
  HttpClient client(weir_.Port("http"));
  const std::string status = client.Get("/admin/status").body;
  EXPECT_GE(NumberIn(status, "allowed") + NumberIn(status, "blocked"), sum);
}

TEST_F(Bench, RefusalsAreCountedApart) {
  // One key, whose limit is 5, asked through descriptors.
  const RunResult run = Run("grpc", {"--keys", "1"});
  EXPECT_EQ(NumberIn(run.output, "allowed"), 5U) << run.output;
  EXPECT_GT(NumberIn(run.output, "limited"), 0U);
}

TEST_F(Bench, TheWrongDoorIsNoticed) {
  EXPECT_EQ(RunProgram({WEIR_PROGRAM, "bench", "resp", "--seconds", "1", "--address",
                        "127.0.0.1:" + std::to_string(weir_.Port("http"))})
                .exit_code,
            3);
  EXPECT_EQ(RunProgram({WEIR_PROGRAM, "bench", "http", "--address", "127.0.0.1:1"}).exit_code, 3);
}

TEST(Simulate, CountsByHand) {
  // 10 a second for 10 s against 10 at once and 5 a second: the bucket starts with 10 and gains 5 a
  // second over the 9.9 s until the last request, so 10 + floor(49.5) = 59 pass, of 100.
  const RunResult run =
      RunProgram({WEIR_PROGRAM, "simulate", "--rate", "10", "--seconds", "10", "--json", "--quota",
                  "{token_bucket: {capacity: 10, refill_per_second: 5}}"});
  EXPECT_EQ(run.exit_code, 0) << run.error_output;
  EXPECT_THAT(run.output, StartsWith("{\"asked\":100,\"allowed\":59,"));
  // A burst is ten seconds' worth in the first of ten: 30 asked, 4 in any 10 s allowed.
  EXPECT_THAT(
      RunProgram({WEIR_PROGRAM, "simulate", "--shape", "burst", "--rate", "3", "--seconds", "10",
                  "--json", "--quota", "{fixed_window: {limit: 4, window: 10s}}"})
          .output,
      StartsWith("{\"asked\":30,\"allowed\":4,\"perSecond\":[{\"asked\":30,\"allowed\":4},"));
}

TEST(Simulate, EveryShapeIsDrawn) {
  const TempDir dir;
  for (const std::string shape : {"steady", "burst", "sawtooth", "poisson", "flash"}) {
    const std::string file = (dir / (shape + ".svg")).string();
    const RunResult run = RunProgram({WEIR_PROGRAM, "simulate", "--shape", shape, "--svg", file});
    EXPECT_EQ(run.exit_code, 0) << shape << run.error_output;
    EXPECT_THAT(run.output, StartsWith(shape + " traffic under token_bucket"));
    std::ifstream in(file);
    const std::string svg(std::istreambuf_iterator<char>(in), {});
    EXPECT_THAT(svg, HasSubstr("<polyline")) << shape;
  }
  EXPECT_EQ(RunProgram({WEIR_PROGRAM, "simulate", "--quota", "{nothing: 1}"}).exit_code, 2);
}

}  // namespace
}  // namespace weir::test
