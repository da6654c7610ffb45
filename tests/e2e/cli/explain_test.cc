// weir explain, reset and top show what happens to a client, however it sends requests, under
// names that each of them accepts.

#include "e2e/cli/exit_codes.h"
#include "e2e/service/fixture.h"
#include "support/paths.h"
#include "support/tcp_connection.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CliExplain : public ServiceTest {
 protected:
  RunResult Weir(std::vector<std::string> words) {
    words.insert(words.begin(), Program());
    return RunProgram(words, {.env = {"WEIR_URL=http://127.0.0.1:" + std::to_string(port_)}});
  }

  /// The status of GET /v1/auth for this client.
  int Auth() { return Client().Get("/v1/auth", {{"X-Original-URI", "/"}}).status; }

  /// The default policy allows `limit` in 100 days.
  std::string DefaultOf(int limit) {
    return dir_
        .Write("weir.yaml", "default_policy: {quota: {fixed_window: {limit: " +
                                std::to_string(limit) + ", window: 100d}}}\n")
        .string();
  }
};

TEST_F(CliExplain, AClientOfAuthIsToldAboutTheDefaultPolicyAndReset) {
  Serve({"--config", DefaultOf(1)});
  const std::vector<std::string> entries = {"-e", "ip=127.0.0.1", "-e", "route=/"};
  const auto with = [&](const std::string& word) {
    std::vector<std::string> words = {word};
    words.insert(words.end(), entries.begin(), entries.end());
    return Weir(words);
  };
  EXPECT_EQ(with("explain").exit_code, kOk);
  EXPECT_EQ(with("reset").exit_code, kNo);
  ASSERT_EQ(Auth(), 200);
  ASSERT_EQ(Auth(), 429);
  const RunResult limited = with("explain");
  EXPECT_EQ(limited.exit_code, kNo) << limited.error_output;
  EXPECT_THAT(limited.output, AllOf(StartsWith("limited by default: 0 of 1 left; retry in "),
                                    HasSubstr("note: this is how GET /v1/auth decides"),
                                    HasSubstr("key|127.0.0.1")));
  // A check of the same entries is not a request of /v1/auth.
  EXPECT_THAT(Weir({"check", "-e", "ip=127.0.0.1", "-e", "route=/"}).output,
              StartsWith("allowed: no enforced policy applies"));
  const RunResult reset = with("reset");
  EXPECT_EQ(reset.exit_code, kOk) << reset.error_output;
  EXPECT_EQ(reset.output, "reset key|127.0.0.1\n");
  EXPECT_EQ(Auth(), 200);
}

TEST_F(CliExplain, APolicyForTheAddressAppliesAndOneThatMatchesIsExplainedAsEver) {
  Serve({"--config", DefaultOf(1)});
  HttpClient client = Client();
  ASSERT_EQ(client
                .Post("/admin/policies", R"({"key":"127.0.0.1","type":"FIXED_WINDOW","capacity":2,)"
                                         R"("windowSeconds":8640000})")
                .status,
            201);
  ASSERT_EQ(Auth(), 200);
  EXPECT_THAT(Weir({"explain", "-e", "ip=127.0.0.1"}).output,
              AllOf(StartsWith("allowed by 127.0.0.1: 1 of 2 left\n"), HasSubstr("note: ")));
  ASSERT_EQ(client.Send("DELETE", "/admin/policies/127.0.0.1").status, 204);
  ASSERT_EQ(client
                .Post("/admin/policies", R"({"key":"per-ip","type":"FIXED_WINDOW","capacity":3,)"
                                         R"("windowSeconds":8640000,"match":{"ip":"*"}})")
                .status,
            201);
  ASSERT_EQ(Auth(), 200);
  EXPECT_THAT(Weir({"explain", "-e", "ip=127.0.0.1"}).output,
              AllOf(StartsWith("allowed by per-ip: 2 of 3 left\n"), Not(HasSubstr("note: "))));
}

TEST_F(CliExplain, AKeyThatClThrottleRefusesIsToldAndReset) {
  Serve({"--resp", "127.0.0.1:0"});
  TcpConnection resp(weir_->Port("resp"));
  // A burst of 0 + 1 in 1,000,000 s: the second is denied.
  const auto limited = [&] {
    resp.Send("CL.THROTTLE user123 0 1 1000000\r\n");
    std::string reply;
    for (int line = 0; line < 6; ++line) reply += resp.ReadThrough("\r\n");
    return reply.starts_with("*5\r\n:1\r\n");
  };
  EXPECT_THAT(Weir({"explain", "user123"}).output, Not(HasSubstr("CL.THROTTLE")));
  ASSERT_FALSE(limited());
  ASSERT_TRUE(limited());
  std::string told;
  EXPECT_TRUE(WaitUntil([&] {
    told = Weir({"explain", "user123"}).output;
    return told.find("refused 1 time in the last minute") != std::string::npos;
  })) << told;
  // 1,000,000 s are 11 days, 13 hours and some; a moment has passed.
  EXPECT_THAT(told,
              AllOf(StartsWith("CL.THROTTLE decides by the limit that comes with each command, "
                               "in bucket cl|user123: it is full again in 11 d 13 h, and was "
                               "refused"),
                    HasSubstr("\na check of this key: allowed by default: 100 of 100 left\n"),
                    Not(HasSubstr("note: "))));
  EXPECT_THAT(Client().Get("/admin/explain?key=user123").body,
              AllOf(HasSubstr(R"("throttle":"cl|user123")"),
                    HasSubstr("CL.THROTTLE decides by the limit of each command; a check of this "
                              "key: allowed by policy 'default'")));
  const RunResult bucket = Weir({"explain", "cl|user123"});
  EXPECT_EQ(bucket.exit_code, kRefused);
  EXPECT_THAT(bucket.error_output, HasSubstr("in bucket cl|user123: it is full again"));
  const RunResult reset = Weir({"reset", "user123"});
  EXPECT_EQ(reset.exit_code, kOk) << reset.error_output;
  EXPECT_EQ(reset.output, "reset user123\n");
  EXPECT_FALSE(limited());
  EXPECT_EQ(Weir({"reset", "cl|user123"}).exit_code, kOk);
  EXPECT_FALSE(limited());
}

TEST_F(CliExplain, BucketsArePrintedInFullAndResetTakesThem) {
  const std::string long_name(60, 'n');
  const std::string value(90, 'v');
  ServePolicies("domain: messaging\npolicies: [{name: " + long_name +
                ", match: {user: \"*\"}, quota: {fixed_window: {limit: 1, window: 100d}}}]");
  const std::string bucket = "messaging/" + long_name + "|user:" + value;
  Weir({"check", "--domain", "messaging", "-e", "user=" + value});
  EXPECT_THAT(Weir({"explain", "--domain", "messaging", "-e", "user=" + value}).output,
              HasSubstr(bucket + " "));
  EXPECT_TRUE(WaitUntil([&] {
    return Weir({"top", "--once"}).output.find(bucket + " ") != std::string::npos;
  }));
  EXPECT_EQ(Weir({"reset", bucket}).output, "reset " + bucket + "\n");
}

// A client that gets an exception is no longer limited, though the earlier bucket is used up.
TEST_F(CliExplain, ABucketWhosePolicyIsReplacedIsNotWhatItsRequestsGet) {
  ServePolicies(
      "domain: api\npolicies:\n"
      "  - {name: free, match: {plan: free, user: \"*\"}, quota: {fixed_window: {limit: 1, window: "
      "100d}}}\n"
      "  - {name: pay, match: {route: /v1/*, user: \"*\"}, quota: {fixed_window: {limit: 1, "
      "window: "
      "100d}}}\n");
  const auto use_up = [&](const std::string& entry) {
    Weir({"check", "--domain", "api", "-e", "user=4|2", "-e", entry});
  };
  use_up("plan=free");
  use_up("route=/v1/a");
  const std::string free = "api/free|plan:free|user:4%7C2";
  const std::string pay = "api/pay|route:/v1/*|user:4%7C2";
  EXPECT_THAT(Weir({"explain", free}).output, StartsWith("limited by free: 0 of 1 left"));
  const auto except = [&](const std::string& key, const std::string& match) {
    const auto made = Client().Post(
        "/admin/policies", R"({"key":")" + key +
                               R"(","type":"FIXED_WINDOW","capacity":9,"windowSeconds":8640000,)" +
                               R"("domain":"api","match":)" + match + "}");
    EXPECT_EQ(made.status, 201) << made.body;
  };
  except("free-42", R"({"plan":"free","user":"4|2"})");
  const RunResult replaced = Weir({"explain", free});
  EXPECT_EQ(replaced.exit_code, kOk) << replaced.error_output;
  EXPECT_THAT(replaced.output,
              AllOf(StartsWith("allowed by free-42: 9 of 9 left\n"),
                    HasSubstr("note: policy 'free-42' replaces 'free' for these entries, so this "
                              "bucket is not charged now")));
  EXPECT_THAT(Client().Get("/admin/metrics?prefix=api/free").body,
              HasSubstr(R"("status":"REPLACED")"));
  // Of the values with this prefix, only one has a policy of its own.
  except("pay-a", R"({"route":"/v1/a","user":"4|2"})");
  EXPECT_THAT(Weir({"explain", pay}).output, StartsWith("limited by pay: 0 of 1 left"));
  except("pay-42", R"({"route":"/v1/*","user":"4|2"})");
  EXPECT_THAT(Weir({"explain", pay}).output, StartsWith("allowed by pay-42: 9 of 9 left\n"));
}

TEST_F(CliExplain, ABareKeyMayContainABar) {
  Serve({"--config", DefaultOf(2)});
  ASSERT_EQ(Weir({"check", "a|b"}).exit_code, kOk);
  const RunResult key = Weir({"explain", "a|b"});
  EXPECT_EQ(key.exit_code, kOk) << key.error_output;
  EXPECT_THAT(key.output,
              AllOf(StartsWith("allowed by default: 1 of 2 left\n"), HasSubstr("key|a%7Cb")));
  // This one could be a bucket as well.
  const RunResult either = Weir({"explain", "api/a|b"});
  EXPECT_EQ(either.exit_code, kRefused);
  EXPECT_THAT(either.error_output, HasSubstr("if it is a bare key, its bucket is key|api/a%7Cb\n"));
  EXPECT_EQ(Weir({"explain", "key|api/a%7Cb"}).exit_code, kOk);
}

TEST_F(CliExplain, APolicyWithoutALimitIsNotZeroOfZero) {
  Serve({});
  ASSERT_EQ(Client().Post("/admin/policies", R"({"key":"vip","unlimited":true})").status, 201);
  EXPECT_EQ(Weir({"check", "vip"}).output, "allowed by vip: unlimited\n");
  EXPECT_THAT(Weir({"explain", "vip"}).output, StartsWith("allowed by vip: unlimited\n"));
}

TEST_F(CliExplain, ABucketNamesTheOtherPoliciesOfItsRequests) {
  Serve({"--policies", dir_.Write("policies.yaml", R"(
domain: api
policies:
  - name: free
    match: { plan: free, user: "*" }
    quota: { fixed_window: { limit: 1, window: 100d } }
  - name: burst
    match: { user: "*" }
    quota: { fixed_window: { limit: 5, window: 100d } }
)")
                           .string()});
  ASSERT_EQ(Weir({"check", "-e", "plan=free", "-e", "user=77"}).exit_code, kOk);
  EXPECT_THAT(Weir({"explain", "api/free|plan:free|user:77"}).output,
              AllOf(StartsWith("limited by free: 0 of 1 left"),
                    HasSubstr("note: requests with these entries are also limited by 'burst'\n")));
  // A user who is on no plan may be limited by one policy alone.
  EXPECT_THAT(Weir({"explain", "api/burst|user:77"}).output, Not(HasSubstr("note:")));
}

// What was asked about has room, but the client is refused by what was not asked about.
TEST_F(CliExplain, NamesWhatTheAnswerLeavesOut) {
  ServePolicies(
      "domain: api\npolicies:\n"
      "  - {name: base, match: {user: \"*\"}, quota: {fixed_window: {limit: 9, window: 100d}}}\n"
      "  - {name: daily, match: {user: \"*\", plan: \"*\"}, quota: {fixed_window: {limit: 1, "
      "window: 100d}}}\n");
  const std::string search = "to find all its buckets: weir keys c-77\n";
  const RunResult user = Weir({"explain", "--domain", "api", "-e", "user=c-77"});
  EXPECT_EQ(user.exit_code, kOk) << user.error_output;
  EXPECT_THAT(
      user.output,
      AllOf(StartsWith("allowed by base: 9 of 9 left\n"),
            HasSubstr("\nnote: policy 'daily' also looks at plan: give it, too\n" + search)));
  EXPECT_THAT(Weir({"explain", "-e", "user=c-77", "-e", "pln=basic"}).output,
              HasSubstr("note: no policy looks at 'pln'; did you mean 'plan'?\n"));
  // A check says so, too, if nothing limits it.
  EXPECT_THAT(Weir({"check", "--domain", "api", "-e", "plan=basic"}).error_output,
              HasSubstr("note: policy 'daily' also looks at user: give it, too\n"));
  EXPECT_THAT(Weir({"explain", "c-77"}).output,
              AllOf(StartsWith("allowed by default: "), HasSubstr("such as user=…\n" + search)));
  EXPECT_THAT(Weir({"explain", "-e", "user=c-77", "--json"}).output,
              HasSubstr(R"("search":"c-77","notes":["policy 'daily' also looks at plan)"));
  EXPECT_THAT(Weir({"explain", "-e", "user=c-77", "-e", "plan=basic"}).output,
              Not(HasSubstr("note: ")));
  EXPECT_THAT(Weir({"explain", "it's me"}).output, HasSubstr(R"(weir keys 'it'\''s me')"));
}

TEST_F(CliExplain, AResetOfNothingIsNoChange) {
  Serve({"--config", DefaultOf(1)});
  EXPECT_EQ(Weir({"reset", "nobody"}).exit_code, kNo);
  EXPECT_EQ(Client().Post("/admin/reset?key=nobody", "").status, 200);
  EXPECT_EQ(Client().Post("/admin/reset?bucket=nobody", "").status, 200);
  EXPECT_THAT(Client().Get("/admin/audit").body, StartsWith(R"({"changes":[])"));
  Weir({"check", "somebody"});
  EXPECT_EQ(Weir({"reset", "somebody"}).exit_code, kOk);
  EXPECT_THAT(Client().Get("/admin/audit").body, HasSubstr("key:somebody"));
}

}  // namespace
}  // namespace weir::test
