// Third-party clients on the built program: redis-cli, redis-benchmark, hiredis and
// Python's redis package; single commands, pipelines, RESP3, AUTH, TLS and mutual TLS.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hiredis/hiredis.h>
#include <signal.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/certificates.h"
#include "support/child_process.h"
#include "support/paths.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir {
namespace {

using test::RunProgram;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Arguments = std::vector<std::string>;

constexpr const char* kKey = "a long enough key";

// `weir serve` with only its RESP endpoint.
class RespClients : public ::testing::Test {
 protected:
  void Serve(const Arguments& more = {}) {
    Arguments arguments = {"serve",       "--http", "off",
                           "--grpc",      "off",    "--resp",
                           "127.0.0.1:0", "--data", (dir_ / "data").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    weir_.emplace(arguments);
    port_ = weir_->Port("resp");
  }

  void ServeTls(bool mutual) {
    certificates_.emplace();
    server_ = certificates_->Issue("server", "server");
    Arguments more = {"--tls-cert", server_.certificate.string(), "--tls-key",
                      server_.key.string()};
    if (mutual) {
      const std::string config =
          dir_.Write("weir.yaml",
                     "tls: { client_ca: " + certificates_->authority().string() + " }\n")
              .string();
      more.insert(more.end(), {"--config", config});
    }
    Serve(more);
  }

  Arguments CaArguments() const {
    return {"--tls", "--cacert", certificates_->authority().string()};
  }

  // redis-cli's output without the last line break.
  std::string Cli(Arguments command, Arguments options = {}) const {
    Arguments arguments = {"redis-cli", "-p", std::to_string(port_)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), command.begin(), command.end());
    const auto result = RunProgram(arguments);
    std::string text = result.output + result.error_output;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

  // Runs tests/e2e/resp_client.py with Debian's Python, whose redis package is the intended one.
  test::RunResult Python(Arguments arguments) const {
    arguments.insert(
        arguments.begin(),
        {"/usr/bin/python3", test::SourcePath("tests/e2e/resp_client.py"), std::to_string(port_)});
    return RunProgram(arguments);
  }

  test::TempDir dir_;
  std::optional<test::Certificates> certificates_;
  test::Certificates::Pair server_;
  std::optional<test::WeirProcess> weir_;
  std::uint16_t port_ = 0;
};

TEST_F(RespClients, RedisCliAsksAndIsAnswered) {
  Serve();
  EXPECT_EQ(Cli({"PING"}), "PONG");
  // L = 2, one permit per hour: the answers do not depend on how slow this machine is.
  EXPECT_EQ(Cli({"CL.THROTTLE", "k", "1", "1", "3600"}), "0\n2\n1\n-1\n3600");
  EXPECT_EQ(Cli({"CL.THROTTLE", "k", "1", "1", "3600"}), "0\n2\n0\n-1\n7200");
  EXPECT_THAT(Cli({"CL.THROTTLE", "k", "1", "1", "3600"}), StartsWith("1\n2\n0\n3600\n"));
  EXPECT_EQ(Cli({"CL.THROTTLE", "k", "1", "0", "60"}),
            "ERR Zero rates are not supported: count_per_period and period must be at least 1");
  EXPECT_THAT(Cli({"INFO"}), HasSubstr("weir_version:"));
  EXPECT_THAT(Cli({"NOSUCH"}), StartsWith("ERR unknown command 'NOSUCH'"));
}

TEST_F(RespClients, RedisCliSpeaksRespThree) {
  Serve();
  EXPECT_EQ(Cli({"CL.THROTTLE", "k", "1", "1", "3600"}, {"-3"}), "0\n2\n1\n-1\n3600");
  EXPECT_THAT(Cli({"HELLO", "3"}, {"-3", "--no-raw"}), HasSubstr("\"proto\" => (integer) 3"));
  const std::string check = Cli({"WEIR.CHECK", "somebody"}, {"-3", "--no-raw"});
  EXPECT_THAT(check, HasSubstr("limited => (integer) 0"));
}

TEST_F(RespClients, RedisCliPipesManyCommands) {
  Serve();
  // Mass insertion: redis-cli writes all it has while it reads replies, and counts errors.
  std::string commands;
  for (int i = 0; i < 20'000; ++i) {
    commands += "CL.THROTTLE key:" + std::to_string(i % 100) + " 9 1 3600\r\n";
  }
  const std::string file = dir_.Write("commands", commands).string();
  const auto result =
      RunProgram({"/bin/sh", "-c", "redis-cli -p " + std::to_string(port_) + " --pipe < " + file});
  EXPECT_EQ(result.exit_code, 0) << result.output << result.error_output;
  EXPECT_THAT(result.output, HasSubstr("errors: 0, replies: 20000"));
}

TEST_F(RespClients, RedisCliLogsIn) {
  Serve({"--resp-key", kKey});
  EXPECT_EQ(Cli({"PING"}), "NOAUTH Authentication required.");
  EXPECT_EQ(Cli({"PING"}, {"--no-auth-warning", "-a", kKey}), "PONG");
  EXPECT_THAT(Cli({"PING"}, {"--no-auth-warning", "-a", "wrong"}), HasSubstr("WRONGPASS"));
  EXPECT_EQ(Cli({"PING"}, {"--no-auth-warning", "--user", "default", "--pass", kKey, "-3"}),
            "PONG");
}

TEST_F(RespClients, RedisBenchmarkRuns) {
  Serve();
  for (const char* pipeline : {"1", "16"}) {
    const auto result = RunProgram({"redis-benchmark", "-p", std::to_string(port_), "-q", "-n",
                                    "20000", "-c", "20", "-P", pipeline, "-r", "1000",
                                    "CL.THROTTLE", "key:__rand_int__", "15", "30", "60"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.output, HasSubstr("requests per second"));
    EXPECT_THAT(result.output + result.error_output, ::testing::Not(HasSubstr("ERR")));
  }
}

struct FreeHiredis {
  void operator()(redisContext* context) const { redisFree(context); }
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Context = std::unique_ptr<redisContext, FreeHiredis>;
using Reply = std::unique_ptr<redisReply, FreeHiredis>;

std::vector<long long> Integers(const redisReply& reply) {
  std::vector<long long> integers;
  for (std::size_t i = 0; i < reply.elements; ++i) integers.push_back(reply.element[i]->integer);
  return integers;
}

TEST_F(RespClients, HiredisSingleAndPipelined) {
  Serve();
  const Context context(redisConnect("127.0.0.1", port_));
  ASSERT_TRUE(context && context->err == 0);
  const Reply pong(static_cast<redisReply*>(redisCommand(context.get(), "PING %s", "x")));
  ASSERT_TRUE(pong);
  EXPECT_STREQ(pong->str, "x");
  // A key of arbitrary bytes: %b takes a length.
  const std::string key("a\0b\r\n", 5);
  for (int i = 0; i < 1000; ++i) {
    redisAppendCommand(context.get(), "CL.THROTTLE %b 99 1 3600", key.data(), key.size());
  }
  int allowed = 0;
  for (int i = 0; i < 1000; ++i) {
    void* raw = nullptr;
    ASSERT_EQ(redisGetReply(context.get(), &raw), REDIS_OK);
    const Reply reply(static_cast<redisReply*>(raw));
    ASSERT_EQ(reply->type, REDIS_REPLY_ARRAY);
    const auto integers = Integers(*reply);
    ASSERT_EQ(integers.size(), 5U);
    if (integers[0] == 0) {
      ++allowed;
      EXPECT_EQ(integers[2], 100 - allowed);
    }
  }
  EXPECT_EQ(allowed, 100);
  const Reply error(static_cast<redisReply*>(redisCommand(context.get(), "CL.THROTTLE k x 1 1")));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->type, REDIS_REPLY_ERROR);
  EXPECT_STREQ(error->str, "ERR max_burst is not an integer: 'x'");
}

TEST_F(RespClients, PythonClientSinglePipelinedAndPooled) {
  Serve();
  const auto result = Python({"plain"});
  EXPECT_EQ(result.exit_code, 0) << result.output << result.error_output;
}

TEST_F(RespClients, PythonClientLogsIn) {
  Serve({"--resp-key", kKey});
  const auto result = Python({"auth", kKey});
  EXPECT_EQ(result.exit_code, 0) << result.output << result.error_output;
}

TEST_F(RespClients, TlsWithRedisCliRedisBenchmarkAndPython) {
  ServeTls(false);
  EXPECT_EQ(Cli({"CL.THROTTLE", "k", "1", "1", "3600"}, CaArguments()), "0\n2\n1\n-1\n3600");
  EXPECT_THAT(Cli({"PING"}), ::testing::Not(HasSubstr("PONG"))) << "plain text is not answered";
  Arguments bench = {
      "redis-benchmark", "-p", std::to_string(port_), "-q", "-n", "5000", "-c", "10", "-P", "8"};
  const Arguments ca = CaArguments();
  bench.insert(bench.end(), ca.begin(), ca.end());
  bench.insert(bench.end(), {"CL.THROTTLE", "key", "15", "30", "60"});
  const auto result = RunProgram(bench);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("requests per second"));
  const auto python = Python({"tls", certificates_->authority().string()});
  EXPECT_EQ(python.exit_code, 0) << python.output << python.error_output;
}

TEST_F(RespClients, MutualTlsWantsAClientCertificate) {
  ServeTls(true);
  EXPECT_THAT(Cli({"PING"}, CaArguments()), ::testing::Not(HasSubstr("PONG")));
  const auto client = certificates_->Issue("billing", "client");
  Arguments options = CaArguments();
  options.insert(options.end(),
                 {"--cert", client.certificate.string(), "--key", client.key.string()});
  EXPECT_EQ(Cli({"PING"}, options), "PONG");
}

TEST_F(RespClients, ANewCertificateIsServedWithoutARestart) {
  ServeTls(false);
  const auto subject = [&] {
    const auto result =
        RunProgram({"/bin/sh", "-c",
                    "echo QUIT | openssl s_client -connect 127.0.0.1:" + std::to_string(port_) +
                        " 2>/dev/null | grep -m1 subject"});
    return result.output;
  };
  EXPECT_THAT(subject(), HasSubstr("server"));
  certificates_->Issue("renewed", "server");
  weir_->process().Signal(SIGHUP);
  EXPECT_TRUE(test::WaitUntil([&] { return subject().find("renewed") != std::string::npos; }));
  certificates_->dir().Write("server.pem", "broken");
  weir_->process().Signal(SIGHUP);
  EXPECT_TRUE(weir_->process().WaitForError("tls.cert: cannot use")) << "a bad file is reported";
  EXPECT_THAT(subject(), HasSubstr("renewed")) << "and changes nothing";
}

}  // namespace
}  // namespace weir
