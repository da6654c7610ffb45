// weir bench and weir simulate: their counts match those of the service.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

#include "support/certificates.h"
#include "support/child_process.h"
#include "support/http_client.h"
#include "support/paths.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::uint64_t NumberIn(const std::string& json, const std::string& name) {
  const std::size_t at = json.find("\"" + name + "\":");
  std::uint64_t number = 0;
  if (at == std::string::npos) return number;
  std::from_chars(json.data() + at + name.size() + 3, json.data() + json.size(), number);
  return number;
}

class Bench : public ::testing::Test {
 protected:
  RunResult Run(const std::string& door, std::vector<std::string> more) {
    std::vector<std::string> words = {
        Program(), "bench", door, "--address", "127.0.0.1:" + std::to_string(weir_.Port(door)),
        "--json"};
    words.insert(words.end(), more.begin(), more.end());
    if (std::find(more.begin(), more.end(), "--requests") == more.end()) {
      words.insert(words.end(), {"--seconds", "0.5"});
    }
    return RunProgram(words);
  }

  TempDir dir_;
  WeirProcess weir_{
      {"serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--data",
       (dir_ / "data").string(), "--config",
       dir_.Write("weir.yaml", "default_policy: {quota: {fixed_window: {limit: 5, window: 100d}}}")
           .string()}};
};

TEST_F(Bench, WhatEachDoorAnsweredIsWhatTheServiceDecided) {
  HttpClient client(weir_.Port("http"));
  const auto decided = [&] {
    const std::string status = client.Get("/admin/status").body;
    return NumberIn(status, "allowed") + NumberIn(status, "blocked");
  };
  std::uint64_t sum = 0;
  std::uint64_t under_way = 0;
  for (const std::string door : {"http", "grpc", "resp"}) {
    for (const std::vector<std::string>& loop :
         {std::vector<std::string>{"-c", "4", "-p", "4", "-t", "2"},
          {"-c", "4", "--rate", "200"}}) {
      const RunResult run = Run(door, loop);
      EXPECT_EQ(run.exit_code, 0) << run.error_output;
      const std::uint64_t answered = NumberIn(run.output, "answered");
      const std::uint64_t unanswered = NumberIn(run.output, "unanswered");
      EXPECT_EQ(NumberIn(run.output, "errors"), 0U) << door;
      EXPECT_EQ(NumberIn(run.output, "allowed") + NumberIn(run.output, "limited"), answered);
      // Every answered check was decided, and nothing was decided that was not sent; checks under
      // way at the end may or may not have been decided.
      sum += answered;
      under_way += unanswered;
      const std::uint64_t now = decided();
      EXPECT_GE(now, sum) << door;
      EXPECT_LE(now, sum + under_way) << door;
      std::uint64_t last = 1;
      for (const char* percentile : {"p50", "p90", "p99", "p99.9", "p99.99", "max"}) {
        const std::uint64_t value = NumberIn(run.output, percentile);
        EXPECT_GE(value, last) << door << " " << percentile << run.output;
        last = value;
      }
      // At 200 a second for half a second, 100 checks are due, and no more are ever sent.
      if (loop.back() == "200") {
        EXPECT_LE(answered + unanswered, 101U) << door;
      } else {
        EXPECT_LE(unanswered, 16U) << door;  // 4 connections, 4 questions each
      }
    }
  }
}

TEST_F(Bench, SoManyRequestsAreAskedAndAllAreAnswered) {
  HttpClient client(weir_.Port("http"));
  std::uint64_t sum = 0;
  for (const std::string door : {"http", "grpc", "resp"}) {
    for (const std::vector<std::string>& loop :
         {std::vector<std::string>{"-c", "4", "-p", "4", "-t", "3"}, {"--rate", "5000"}}) {
      std::vector<std::string> words = {"--requests", "1001"};
      words.insert(words.end(), loop.begin(), loop.end());
      const RunResult run = Run(door, words);
      ASSERT_EQ(run.exit_code, 0) << door << run.error_output;
      EXPECT_EQ(NumberIn(run.output, "answered"), 1001U) << door << run.output;
      EXPECT_EQ(NumberIn(run.output, "unanswered"), 0U) << door;
      sum += 1001;
      const std::string status = client.Get("/admin/status").body;
      EXPECT_EQ(NumberIn(status, "allowed") + NumberIn(status, "blocked"), sum) << door;
    }
  }
  // If a duration is given as well, it applies: at 10 a second, a second is too short for 1,001.
  const RunResult late = Run("http", {"--requests", "1001", "--rate", "10", "--seconds", "1"});
  EXPECT_EQ(late.exit_code, 0) << late.error_output;
  EXPECT_LE(NumberIn(late.output, "answered"), 11U);
}

TEST(BenchTls, EveryDoorIsSpokenToInsideTls) {
  Certificates made;
  const Certificates::Pair server = made.Issue("localhost", "server");
  const Certificates::Pair me = made.Issue("me", "me");
  const TempDir dir;
  const auto config = dir.Write(
      "weir.yaml", "tls: {cert: " + server.certificate.string() + ", key: " + server.key.string() +
                       ", client_ca: " + made.authority().string() + "}\n");
  WeirProcess weir({"serve", "--config", config.string(), "--http", "127.0.0.1:0", "--grpc",
                    "127.0.0.1:0", "--resp", "127.0.0.1:0", "--data", (dir / "data").string()});
  const std::string ca = made.authority().string();
  const std::vector<std::string> mutual = {"--cert", me.certificate.string(), "--cert-key",
                                           me.key.string()};
  for (const std::string door : {"http", "grpc", "resp"}) {
    const auto run = [&](const std::string& host, std::vector<std::string> more,
                         const std::vector<std::string>& env = {}) {
      more.insert(more.begin(), {Program(), "bench", door, "--address",
                                 host + ":" + std::to_string(weir.Port(door)), "--requests", "500",
                                 "-c", "4", "-p", "4", "-t", "2", "--json"});
      return RunProgram(more, {.env = env});
    };
    std::vector<std::string> words = {"--tls", "--ca", ca};
    words.insert(words.end(), mutual.begin(), mutual.end());
    for (const char* host : {"localhost", "127.0.0.1"}) {
      const RunResult good = run(host, words);
      ASSERT_EQ(good.exit_code, 0) << door << good.error_output;
      EXPECT_EQ(NumberIn(good.output, "answered"), 500U) << door << good.output;
      EXPECT_EQ(NumberIn(good.output, "errors"), 0U) << door;
    }
    EXPECT_EQ(run("localhost", {"--tls"},
                  {"WEIR_CA=" + ca, "WEIR_CERT=" + mutual[1], "WEIR_CERT_KEY=" + mutual[3]})
                  .exit_code,
              0)
        << door;
    // Not signed by a trusted authority; no client certificate; plaintext.
    std::vector<std::string> untrusting = mutual;
    untrusting.insert(untrusting.begin(), "--tls");
    const RunResult untrusted = run("localhost", untrusting);
    EXPECT_EQ(untrusted.exit_code, 3) << door;
    EXPECT_THAT(untrusted.error_output, HasSubstr("use --ca to give the CA certificate"));
    EXPECT_EQ(run("localhost", {"--tls", "--ca", ca}).exit_code, 3) << door;
    EXPECT_EQ(run("localhost", {}).exit_code, 3) << door;
    EXPECT_EQ(run("localhost", {"--tls", "--ca", "/no/such/file"}).exit_code, 2) << door;
    EXPECT_EQ(run("localhost", {"--ca", ca}).exit_code, 2) << door;
  }
}

TEST_F(Bench, ThePictureIsWellFormedAndHasOneSeries) {
  const std::string file = (dir_ / "rate.svg").string();
  ASSERT_EQ(Run("http", {"-c", "2", "--svg", file}).exit_code, 0);
  const RunResult checked = RunProgram({"python3", "-c",
                                        "import sys, xml.etree.ElementTree as t\n"
                                        "r = t.parse(sys.argv[1]).getroot()\n"
                                        "n = '{http://www.w3.org/2000/svg}'\n"
                                        "assert r.tag == n + 'svg', r.tag\n"
                                        "lines = r.findall('.//' + n + 'polyline')\n"
                                        "assert len(lines) == 1, len(lines)\n"
                                        "words = [e.text for e in r.iter(n + 'text')]\n"
                                        "assert 'responses per second' in words, words\n",
                                        file});
  EXPECT_EQ(checked.exit_code, 0) << checked.error_output;
}

TEST_F(Bench, EachDoorCountsWhatTheDefaultPolicyAllowsAndRefuses) {
  HttpClient client(weir_.Port("http"));
  // Three keys with 5 permits each, checked about 50 times: 15 pass through the first endpoint and
  // none through the others, which use the same keys.
  std::uint64_t passes = 15;
  for (const std::string door : {"http", "grpc", "resp"}) {
    const RunResult run = Run(door, {"--keys", "3", "--requests", "150"});
    EXPECT_EQ(NumberIn(run.output, "allowed"), passes) << door << run.output;
    EXPECT_EQ(NumberIn(run.output, "limited"), 150 - passes) << door << run.output;
    passes = 0;
  }
  const std::string status = client.Get("/admin/status").body;
  EXPECT_EQ(NumberIn(status, "allowed"), 15U) << status;
  EXPECT_EQ(NumberIn(status, "blocked"), 435U) << status;
}

TEST_F(Bench, TheWrongDoorIsNoticed) {
  EXPECT_EQ(RunProgram({Program(), "bench", "resp", "--seconds", "1", "--address",
                        "127.0.0.1:" + std::to_string(weir_.Port("http"))})
                .exit_code,
            3);
  EXPECT_EQ(Run("http", {"--tls"}).exit_code, 3);
  EXPECT_EQ(RunProgram({Program(), "bench", "http", "--address", "127.0.0.1:1"}).exit_code, 3);
}

TEST_F(Bench, APortAloneIsOneOfThisMachine) {
  const RunResult run = RunProgram({Program(), "bench", "http", "--requests", "10", "--json",
                                    "--address", std::to_string(weir_.Port("http"))});
  EXPECT_EQ(run.exit_code, 0) << run.error_output;
  const RunResult wrong = RunProgram({Program(), "bench", "http", "--address", "here"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.error_output.find("or a port"), std::string::npos) << wrong.error_output;
}

TEST(Simulate, CountsByHand) {
  // 10 a second for 10 s against 10 at once and 5 a second: the bucket starts with 10 and gains 5 a
  // second over the 9.9 s until the last request, so 10 + floor(49.5) = 59 pass, of 100.
  const RunResult run =
      RunProgram({Program(), "simulate", "--rate", "10", "--seconds", "10", "--json", "--quota",
                  "{token_bucket: {capacity: 10, refill_per_second: 5}}"});
  EXPECT_EQ(run.exit_code, 0) << run.error_output;
  EXPECT_THAT(run.output, StartsWith("{\"asked\":100,\"allowed\":59,"));
  // A burst is ten seconds' worth in the first of ten: 30 requested, 4 in any 10 s allowed.
  EXPECT_THAT(
      RunProgram({Program(), "simulate", "--shape", "burst", "--rate", "3", "--seconds", "10",
                  "--json", "--quota", "{fixed_window: {limit: 4, window: 10s}}"})
          .output,
      StartsWith("{\"asked\":30,\"allowed\":4,\"perSecond\":[{\"asked\":30,\"allowed\":4},"));
}

TEST(Simulate, EveryShapeIsDrawn) {
  const TempDir dir;
  for (const std::string shape : {"steady", "burst", "sawtooth", "poisson", "flash"}) {
    const std::string file = (dir / (shape + ".svg")).string();
    const RunResult run = RunProgram({Program(), "simulate", "--shape", shape, "--svg", file});
    EXPECT_EQ(run.exit_code, 0) << shape << run.error_output;
    EXPECT_THAT(run.output, StartsWith(shape + " traffic under token_bucket"));
    std::ifstream in(file);
    const std::string svg(std::istreambuf_iterator<char>(in), {});
    EXPECT_THAT(svg, HasSubstr("<polyline")) << shape;
  }
  EXPECT_EQ(RunProgram({Program(), "simulate", "--quota", "{nothing: 1}"}).exit_code, 2);
}

}  // namespace
}  // namespace weir::test
