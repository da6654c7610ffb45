// The identity of a client of the RESP port: by password, by the key of a role, by certificate and
// by address; and what its errors and traces say.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/resp/batch.h"
#include "protocol/resp/session.h"
#include "telemetry/tracer.h"
#include "unit/protocol/resp/bucket_limiter.h"

namespace weir::resp {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RespLogin : public ::testing::Test {
 protected:
  std::string Talk(std::string_view input) {
    if (!session_) session_.emplace(worker_, peer_, "10.0.0.2:6380", [] {});
    Buffer out;
    session_->Feed(input, out);
    return std::string(out.view());
  }

  std::string peer_ = "10.0.0.1:1234";
  BucketLimiter limiter_;
  Service service_;
  Worker worker_{service_, limiter_};
  std::optional<Session> session_;
};

TEST_F(RespLogin, AKeyOfARoleOpensWhatNoPasswordDoes) {
  service_.authenticate = [](std::string_view word) { return word == "password"; };
  service_.knows = [](std::string_view address, std::string_view word) {
    return address == "10.0.0.1" && word == "key";
  };
  service_.gives_back = [](std::string_view, std::string_view word) { return word == "key"; };
  EXPECT_THAT(Talk("AUTH wrong\r\n"), StartsWith("-WRONGPASS "));
  EXPECT_EQ(Talk("AUTH key\r\nPING\r\n"), "+OK\r\n+PONG\r\n");
  EXPECT_THAT(Talk("WEIR.REFUND a\r\n"), StartsWith("*8\r\n"));
  EXPECT_THAT(Talk("AUTH password\r\nWEIR.REFUND a\r\n"), HasSubstr("-NOPERM "));
}

TEST_F(RespLogin, OnlyAdministratorsHaveAKeyWhereNoPasswordIsAskedFor) {
  service_.administrator = [](std::string_view, std::string_view word) {
    return word == "admin" ? std::optional<std::string>("the admin") : std::nullopt;
  };
  EXPECT_EQ(Talk("PING\r\n"), "+PONG\r\n");
  EXPECT_THAT(Talk("AUTH wrong\r\n"), StartsWith("-WRONGPASS "));
  EXPECT_EQ(Talk("AUTH admin\r\n"), "+OK\r\n");
}

// version 1, one application of one charge: key "k", a token bucket (0) of 5 permits with 1
// refilled each second, cost 2 (zigzag 4).
std::string Apply() {
  const std::string bytes("\1\1\1\0\0\1\1k\0\5\1\x80\x94\xeb\xdc\3\4", 17);
  return "*2\r\n$10\r\nWEIR.APPLY\r\n$" + std::to_string(bytes.size()) + "\r\n" + bytes + "\r\n";
}

TEST_F(RespLogin, NobodyMayUseThisAsAStoreUnlessSaid) {
  EXPECT_THAT(Talk(Apply()), StartsWith("-NOPERM WEIR.APPLY needs the role store"));
}

TEST_F(RespLogin, AKeyOfTheRoleStoreAppliesAndNoOtherDoes) {
  service_.authenticate = [](std::string_view) { return false; };
  service_.knows = [](std::string_view, std::string_view) { return true; };
  service_.stores = [](std::string_view, std::string_view word) { return word == "store-key"; };
  EXPECT_THAT(Talk("AUTH check-key\r\n" + Apply()), StartsWith("+OK\r\n-NOPERM "));
  // Version; decided; allowed, limit 5 (zigzag 10), 3 left, no wait, full in 2 s (zigzag 4e9), no
  // lease. BucketLimiter does not report that it has applied it.
  const std::string answer("\1\1\0\12\6\0\x80\xd0\xac\xf3\xe\0", 12);
  EXPECT_EQ(Talk("AUTH store-key\r\n" + Apply()), "+OK\r\n$12\r\n" + answer + "\r\n");
  EXPECT_THAT(Talk("PING\r\n" + Apply() + "PING\r\n"),
              ::testing::AllOf(StartsWith("+PONG\r\n$12\r\n"), ::testing::EndsWith("+PONG\r\n")));
  EXPECT_THAT(Talk("WEIR.APPLY nonsense\r\n"), StartsWith("-ERR unsupported version"));
  EXPECT_THAT(Talk("*2\r\n$10\r\nWEIR.APPLY\r\n$2\r\n\1\1\r\n"), StartsWith("-ERR malformed"));
  EXPECT_THAT(Talk("RESET\r\n" + Apply()), HasSubstr("-NOAUTH "));
}

TEST_F(RespLogin, TheBracketsOfAnAddressAreNotPartOfIt) {
  peer_ = "[2001:db8::1]:1234";
  std::vector<std::string> asked;
  service_.administrator = [&](std::string_view address, std::string_view) {
    asked.emplace_back(address);
    return std::optional<std::string>();
  };
  Talk("PING\r\n");
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked.front(), "2001:db8::1");
}

TEST_F(RespLogin, ACertificateNeedsNoPassword) {
  service_.authenticate = [](std::string_view) { return false; };
  service_.gives_back = [](std::string_view, std::string_view) { return false; };
  service_.administrator = [](std::string_view, std::string_view) {
    return std::optional<std::string>();
  };
  service_.by_subject = [](std::string_view address, std::string_view subject) {
    Service::Login login;
    login.known = address == "10.0.0.1" && subject != "stranger";
    login.gives_back = subject == "worker";
    if (subject == "boss") login.administrator = "the boss";
    return login;
  };
  EXPECT_THAT(Talk("PING\r\n"), StartsWith("-NOAUTH "));
  session_->LogInBySubject("");
  EXPECT_THAT(Talk("PING\r\n"), StartsWith("-NOAUTH "));
  session_->LogInBySubject("stranger");
  EXPECT_THAT(Talk("PING\r\n"), StartsWith("-NOAUTH "));
  session_->LogInBySubject("reader");
  EXPECT_EQ(Talk("PING\r\n"), "+PONG\r\n");
  EXPECT_THAT(Talk("WEIR.REFUND a\r\n"), StartsWith("-NOPERM "));
  session_->LogInBySubject("worker");
  EXPECT_THAT(Talk("WEIR.REFUND a\r\n"), StartsWith("*8\r\n"));
  EXPECT_THAT(Talk("WEIR.RESET a\r\n"), StartsWith("-NOPERM "));
  // RESET drops a password; the certificate is still there.
  EXPECT_EQ(Talk("RESET\r\nPING\r\n"), "+RESET\r\n+PONG\r\n");
  session_->LogInBySubject("boss");
  EXPECT_EQ(Talk("WEIR.RESET a\r\n"), "+OK\r\n");
}

TEST_F(RespLogin, WhereNobodyLooksAtCertificatesOneChangesNothing) {
  service_.authenticate = [](std::string_view) { return false; };
  Talk("PING\r\n");
  session_->LogInBySubject("boss");
  EXPECT_THAT(Talk("PING\r\n"), StartsWith("-NOAUTH "));
}

TEST_F(RespLogin, ResetIsForAdministrators) {
  service_.administrator = [](std::string_view address,
                              std::string_view word) -> std::optional<std::string> {
    if (word != "admin" || address != "10.0.0.1") return std::nullopt;
    return "the admin";
  };
  std::vector<std::string> resets;
  service_.on_reset = [&](const std::string& who, std::string_view key, const Status& outcome) {
    resets.push_back(who + (outcome.ok() ? " of " : " perhaps of ") + std::string(key));
  };
  EXPECT_THAT(Talk("WEIR.RESET a\r\n"),
              StartsWith("-NOPERM WEIR.RESET requires a key with the role operate"));
  EXPECT_THAT(Talk("AUTH admi\r\nWEIR.RESET a\r\n"), HasSubstr("-NOPERM "));
  EXPECT_THAT(resets, ElementsAre());
  EXPECT_EQ(Talk("AUTH admin\r\nWEIR.RESET a\r\n"), "+OK\r\n+OK\r\n");
  EXPECT_THAT(resets, ElementsAre()) << "nothing was charged";
  EXPECT_THAT(Talk("WEIR.CHECK a\r\nWEIR.RESET a\r\nWEIR.RESET a\r\nPING\r\n"),
              EndsWith("\r\n+OK\r\n+OK\r\n+PONG\r\n"));
  EXPECT_THAT(resets, ElementsAre("the admin of a"));
  Talk("WEIR.CHECK a\r\n");
  limiter_.status = Error{Code::kUnavailable, "gone"};
  EXPECT_EQ(Talk("WEIR.RESET a\r\n"), "-TRYAGAIN gone\r\n");
  limiter_.status = {};
  EXPECT_THAT(resets, ElementsAre("the admin of a")) << "it was not reset";
  limiter_.status = Error{Code::kDeadlineExceeded, "late"};
  EXPECT_EQ(Talk("WEIR.RESET a\r\n"), "-TRYAGAIN late\r\n");
  limiter_.status = {};
  EXPECT_THAT(resets, ElementsAre("the admin of a", "the admin perhaps of a"));
  // A full batch accepts a reset as its last command.
  std::string many;
  for (std::size_t i = 0; i + 1 < Batch::kMaxQuestions; ++i) many += "WEIR.PEEK a\r\n";
  Talk(many + "WEIR.RESET a\r\n");
  EXPECT_EQ(limiter_.batches.back(), Batch::kMaxQuestions + 1);
  EXPECT_THAT(Talk("RESET\r\nWEIR.RESET a\r\n"), HasSubstr("-NOPERM "));
}

TEST_F(RespLogin, ErrorsHaveTheWordsThatClientsKnow) {
  const auto word = [this](Code code) {
    limiter_.status = Error{code, "why"};
    const std::string check = Talk("WEIR.CHECK a\r\n");
    EXPECT_EQ(Talk("CL.THROTTLE a 0 1 1\r\n"), check);
    limiter_.status = {};
    return check;
  };
  EXPECT_EQ(word(Code::kUnavailable), "-TRYAGAIN why\r\n");
  EXPECT_EQ(word(Code::kDeadlineExceeded), "-TRYAGAIN why\r\n");
  EXPECT_EQ(word(Code::kPermissionDenied), "-NOPERM why\r\n");
  EXPECT_EQ(word(Code::kUnauthenticated), "-NOAUTH why\r\n");
  EXPECT_EQ(word(Code::kInternal), "-ERR why\r\n");
  EXPECT_THAT(Talk("WEIR.CHECK a\r\n"), StartsWith("*8\r\n")) << "an error does not stay";
}

TEST_F(RespLogin, ACommandThatIsTracedHasASpanOfItsOwn) {
  telemetry::Tracer all({.ratio = 1.0});
  limiter_.tracer_in_use = &all;
  Talk("WEIR.CHECK a\r\nWEIR.CHECK b\r\n");
  std::vector<telemetry::Span> spans;
  all.Take(spans, 10);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].name, "WEIR.*");
  EXPECT_NE(spans[0].context.trace_low, spans[1].context.trace_low) << "each begins a trace";
  telemetry::Tracer none({.ratio = 0.0});
  limiter_.tracer_in_use = &none;
  Talk("WEIR.CHECK a\r\n");
  spans.clear();
  none.Take(spans, 10);
  EXPECT_TRUE(spans.empty());
}

// More concurrent sessions than batches kept for reuse.
TEST_F(RespLogin, SessionsThatWaitTogetherAreAllAnswered) {
  limiter_.later = true;
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::unique_ptr<Buffer>> outs;
  int resumed = 0;
  for (int i = 0; i < 12; ++i) {
    outs.push_back(std::make_unique<Buffer>());
    sessions.push_back(
        std::make_unique<Session>(worker_, peer_, "10.0.0.2:6380", [&] { ++resumed; }));
    sessions.back()->Feed("CL.THROTTLE k" + std::to_string(i) + " 0 1 1\r\n", *outs.back());
  }
  limiter_.AnswerAll();
  EXPECT_EQ(resumed, 12);
  for (const auto& out : outs) EXPECT_EQ(out->view(), "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1\r\n");
}

}  // namespace
}  // namespace weir::resp
