// weir policy enforce, shadow and apply against a scripted service.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "e2e/cli/exit_codes.h"
#include "support/child_process.h"
#include "support/paths.h"
#include "support/tcp_server.h"
#include "support/temp_dir.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kStored =
    R"({"id":1,"policyKey":"p","type":"FIXED_WINDOW","capacity":5,"windowSeconds":60,)"
    R"("domain":"default","shadow":true,"version":3})";
constexpr std::string_view kOfFile =
    R"([{"policyKey":"f","type":"FIXED_WINDOW","capacity":5,"windowSeconds":60,"domain":"default",)"
    R"("shadow":true,"source":"file","definedIn":"policies.yaml","shadowInFile":false,)"
    R"("override":{"id":2,"policyKey":"default/f","type":"OVERRIDE","shadow":true,"version":7}}])";
constexpr std::string_view kWarned =
    R"({"policyKey":"p","type":"FIXED_WINDOW","version":4,"warnings":["keys start full"]})";
constexpr std::string_view kConflict =
    R"({"status":409,"error":"Conflict","message":"the policy was changed meanwhile"})";

std::string Response(int status, std::string_view body) {
  return "HTTP/1.1 " + std::to_string(status) + " Status\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" +
         std::string(body);
}

/// A service with one stored policy, p, and one from a file, f. Changes are answered with
/// `change`.
class PolicyWords : public ::testing::Test {
 protected:
  RunResult Weir(std::vector<std::string> words) {
    words.insert(words.begin(), {Program(), "policy"});
    return RunProgram(words, {.env = {"WEIR_URL=http://127.0.0.1:" + std::to_string(server_.port()),
                                      "WEIR_ADMIN_KEY="}});
  }

  std::string Answer(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (!line.starts_with("GET ")) {
      changes_.push_back(line.substr(0, line.rfind(' ')));
      return changes_.back() == refused_ ? Response(409, kConflict) : change_;
    }
    if (line.starts_with("GET /admin/policies/p ")) return Response(200, kStored);
    if (line.starts_with("GET /admin/policies?")) return Response(200, kOfFile);
    return Response(404, R"({"status":404,"error":"Not Found","message":"no policy"})");
  }

  std::mutex mutex_;
  std::string change_ = Response(200, kWarned);
  std::string refused_;               // a method and target that is not answered so
  std::string unanswered_;            // likewise: the connection is closed
  std::string last_;                  // likewise: after it, connections are refused
  std::vector<std::string> changes_;  // the methods and targets
  TcpServer server_{[this](TcpConnection& connection) {
    constexpr std::string_view kLength = "Content-Length: ";
    const std::string head = connection.ReadThrough("\r\n\r\n");
    const std::size_t length = head.find(kLength);
    if (length != head.npos) connection.Read(std::stoul(head.substr(length + kLength.size())));
    const std::string line = head.substr(0, head.find("\r\n"));
    const std::string answer = Answer(line);
    if (!last_.empty() && line.starts_with(last_ + " ")) server_.StopListening();
    if (unanswered_.empty() || !line.starts_with(unanswered_ + " ")) connection.Send(answer);
  }};
  TempDir dir_;
};

// Another client has changed it since it was read.
TEST_F(PolicyWords, APolicyIsChangedOnlyFromTheVersionThatWasRead) {
  change_ = Response(409, kConflict);
  const RunResult enforced = Weir({"enforce", "p"});
  EXPECT_EQ(enforced.exit_code, kRefused);
  EXPECT_THAT(enforced.error_output, HasSubstr("409: the policy was changed meanwhile"));
  EXPECT_EQ(Weir({"enforce", "f"}).exit_code, kRefused);
  EXPECT_THAT(changes_, ElementsAre("PUT /admin/policies/p?version=3",
                                    "PUT /admin/policies/default%2Ff?version=7"));
}

TEST_F(PolicyWords, WhatTheServiceWarnsOfIsPrinted) {
  const auto file = dir_.Write(
      "given.json", R"({"key":"p","type":"FIXED_WINDOW","capacity":9,"windowSeconds":60})");
  const RunResult applied = Weir({"apply", file.string()});
  EXPECT_EQ(applied.exit_code, kOk) << applied.error_output;
  EXPECT_EQ(applied.error_output, "weir: warning: p: keys start full\n");
  EXPECT_THAT(Weir({"enforce", "p"}).error_output, HasSubstr("keys start full"));
}

// As a proxy in between answers: in a format of its own.
TEST_F(PolicyWords, AnAnswerThatIsNotTheServicesIsNamedByItsStatus) {
  change_ = Response(502, "<html>");
  EXPECT_THAT(Weir({"enforce", "p"}).error_output, HasSubstr("502: the service gave no reason"));
  TcpServer proxy([](TcpConnection& connection) {
    connection.ReadThrough("\r\n\r\n");
    connection.Send(Response(502, "<html>"));
  });
  const RunResult forecast = RunProgram({Program(), "slots", "forecast", "--url",
                                         "http://127.0.0.1:" + std::to_string(proxy.port()),
                                         "--config", "c", "--count", "1", "--at", "now"});
  EXPECT_NE(forecast.exit_code, kOk);
  EXPECT_THAT(forecast.error_output, HasSubstr("status 502"));
}

// Without an answer, nobody knows; without a connection, nothing can have been changed.
TEST_F(PolicyWords, AnApplyThatLosesTheServiceSaysWhatIsUnknown) {
  const std::string file = dir_.Write("given.json", R"([
    {"key":"p","type":"FIXED_WINDOW","capacity":9,"windowSeconds":60},
    {"key":"y","type":"FIXED_WINDOW"}, {"key":"z","type":"FIXED_WINDOW"}])")
                               .string();
  unanswered_ = "POST /admin/policies";
  const RunResult unanswered = Weir({"apply", file});
  EXPECT_EQ(unanswered.exit_code, kUnreachable);
  EXPECT_THAT(unanswered.error_output,
              HasSubstr("weir: applied 1 of 3 changes; unknown: y; not applied: z\n"));
  last_ = "PUT /admin/policies/p";
  const RunResult refused = Weir({"apply", file});
  EXPECT_EQ(refused.exit_code, kUnreachable);
  EXPECT_THAT(refused.error_output,
              AllOf(HasSubstr("cannot connect; is `weir serve` running there?\n"),
                    HasSubstr("weir: applied 1 of 3 changes; not applied: y, z\n")));
}

// Everything would have been taken; then somebody else was faster.
TEST_F(PolicyWords, AnApplyThatFailsOnItsWaySaysHowFarItCame) {
  refused_ = "POST /admin/policies";
  const RunResult applied = Weir({"apply", dir_.Write("given.json", R"([
    {"key":"p","type":"FIXED_WINDOW","capacity":9,"windowSeconds":60},
    {"key":"y","type":"FIXED_WINDOW"}, {"key":"z","type":"FIXED_WINDOW"}])")
                                               .string()});
  EXPECT_EQ(applied.exit_code, kRefused);
  EXPECT_THAT(applied.error_output, HasSubstr("weir: 409: the policy was changed meanwhile\n"
                                              "weir: applied 1 of 3 changes; not applied: y, z\n"));
  EXPECT_THAT(changes_, ElementsAre("POST /admin/policies/p/check", "POST /admin/policies/y/check",
                                    "POST /admin/policies/z/check", "PUT /admin/policies/p",
                                    "POST /admin/policies"));
}

}  // namespace
}  // namespace weir::test
