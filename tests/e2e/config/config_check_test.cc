// weir config check, as a user experiences it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kGood =
    "domain: api\n"
    "policies:\n"
    "  - {name: a, match: {user: \"*\"}, quota: {fixed_window: {limit: 3, window: 1s}}}\n";

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome Check(const std::string& file, const std::vector<std::string>& env = {}) {
  test::SpawnOptions options;
  options.env = env;
  test::WeirProcess weir({"config", "check", file}, options);
  const int code = weir.process().Wait().value_or(-1);
  return {code, weir.process().output(), weir.process().error_output()};
}

TEST(ConfigCheck, GoodFilesAreOk) {
  const test::TempDir folder;
  const std::string policies = folder.Write("p.yaml", kGood).string();
  const std::string config = folder.Write("weir.yaml", "policies: [p.yaml]\n").string();
  const Outcome of_policies = Check(policies);
  EXPECT_EQ(of_policies.code, 0) << of_policies.err;
  EXPECT_THAT(of_policies.out, HasSubstr("1 policy in 1 file: ok"));
  const Outcome of_config = Check(config);
  EXPECT_EQ(of_config.code, 0) << of_config.err;
  EXPECT_THAT(of_config.out, HasSubstr(config + ": ok"));
}

TEST(ConfigCheck, NamesThatAreThereTwiceAreNamedTogetherAtTheirPlaces) {
  const test::TempDir folder;
  const std::string file = folder
                               .Write("p.yaml", std::string(kGood) +
                                                    "  - {name: a, match: {}, unlimited: true}\n"
                                                    "  - {name: b, key: k, unlimited: true}\n"
                                                    "  - {name: c, key: k, unlimited: true}\n")
                               .string();
  const Outcome twice = Check(file);
  EXPECT_EQ(twice.code, 1);
  EXPECT_EQ(twice.err, file + ":4:5: policy name 'a' is already used by " + file + ":3:5\n" + file +
                           ":6:5: key 'k' is already used by " + file + ":5:5\n");
}

// A job that checks the wrong folder must not pass.
TEST(ConfigCheck, AFolderWithoutPolicyFilesIsAnError) {
  const test::TempDir folder;
  const Outcome empty = Check(folder.path().string());
  EXPECT_EQ(empty.code, 1);
  EXPECT_THAT(empty.err,
              HasSubstr(folder.path().string() + ": has no policy files (.yaml or .yml)"));
  EXPECT_THAT(empty.out, Not(HasSubstr("ok")));
}

TEST(ConfigCheck, WhatSeveralPoliciesHaveWrongBeginsWithItsPlace) {
  const test::TempDir folder;
  const std::string twice =
      folder
          .Write("p.yaml", std::string(kGood) +
                               "  - {name: a, match: {user: bob}, quota: {fixed_window: "
                               "{limit: 3, window: 1s}}}\n")
          .string();
  EXPECT_EQ(Check(twice).err,
            twice + ":4:5: policy name 'a' is already used by " + twice + ":3:5\n");
}

// `weir serve` would not start with any of them.
TEST(ConfigCheck, UrlsAreReadWithTheirOptions) {
  const test::TempDir folder;
  const auto wrong = [&folder](const std::string& text, const std::string& said) {
    const std::string config = folder.Write("weir.yaml", text + "\n").string();
    const Outcome check = Check(config);
    EXPECT_EQ(check.code, 1) << text;
    EXPECT_THAT(check.err, HasSubstr(config + ":1:" + said));
  };
  wrong("store: \"redis://h?gahter=1ms\"", "8: store: redis URL: unknown option 'gahter'");
  wrong("store: \"redis://\"", "8: store: redis URL: the host is missing");
  wrong("stores: { a: \"mysql://h\" }", "9: stores: a: mysql:// URL: the database is missing");
  wrong("policy_store: \"postgres://h/d?no_such=1\"", "15: policy_store: postgres:// URL");
  wrong("notify: { cache: \"redis://h?tls=on\" }", "18: notify.cache: redis URL");
  wrong("notify: { providers: \"smtp://h\" }", "22: notify.providers: provider of all channels");
}

TEST(ConfigCheck, AnEnvoyConfigurationOfZeroBytesIsAnError) {
  const test::TempDir folder;
  const std::string empty = folder.Write("envoy.yaml", "").string();
  test::WeirProcess check({"config", "check", "--envoy", empty}, {});
  EXPECT_EQ(check.process().Wait().value_or(-1), 1);
  EXPECT_EQ(check.process().error_output(), empty + ": is empty\n");
  test::WeirProcess import({"config", "import", empty}, {});
  EXPECT_EQ(import.process().Wait().value_or(-1), 2);
}

TEST(ConfigCheck, AServiceThatWouldListenNowhereIsAnError) {
  const test::TempDir folder;
  const std::string off = "listen: {http: \"off\", grpc: \"off\", resp: \"off\"}\n";
  const Outcome silent = Check(folder.Write("weir.yaml", off).string());
  EXPECT_EQ(silent.code, 1);
  EXPECT_THAT(silent.err, HasSubstr("weir.yaml: listen: http, grpc and resp are all off"));
  const std::string proxy = off + "proxy: {upstream: http://127.0.0.1:9}\n";
  EXPECT_EQ(Check(folder.Write("proxy.yaml", proxy).string()).code, 0);
}

TEST(ConfigCheck, ErrorsOfTheConfigurationDoNotHideThoseOfItsPolicies) {
  const test::TempDir folder;
  const std::string config =
      folder.Write("weir.yaml", "admin: {key: x}\npolicies: [none.yaml]\n").string();
  const Outcome both = Check(config);
  EXPECT_EQ(both.code, 1);
  EXPECT_THAT(both.err, HasSubstr("unknown setting 'admin.key'"));
  EXPECT_THAT(both.err, HasSubstr("none.yaml"));
  EXPECT_THAT(both.out, Not(HasSubstr("ok")));
}

TEST(ConfigCheck, WarnsOfPoliciesThatAClusterCannotChargeTogether) {
  const test::TempDir folder;
  std::string policies(kGood);
  policies += "  - {name: b, match: {}, quota: {fixed_window: {limit: 3, window: 1s}}}\n";
  folder.Write("p.yaml", policies);
  const std::string config =
      folder
          .Write("weir.yaml",
                 "store: \"redis+cluster://127.0.0.1:7000?tag=user\"\npolicies: [p.yaml]\n")
          .string();
  const Outcome of_config = Check(config);
  EXPECT_EQ(of_config.code, 0) << of_config.err;
  EXPECT_THAT(of_config.err, HasSubstr("warning: policies 'b' and 'a' of domain 'api'"));
}

TEST(ConfigCheck, WarnsOfPoliciesThatAClusterChargesSlotBySlot) {
  const test::TempDir folder;
  folder.Write(
      "p.yaml",
      "domain: api\npolicies:\n"
      "  - {name: a, chain: [{user: '*'}], quota: {fixed_window: {limit: 3, window: 1s}}}\n"
      "  - {name: b, chain: [{ip: '*'}], quota: {fixed_window: {limit: 3, window: 1s}}}\n");
  const auto check = [&folder](const std::string& url) {
    return Check(
        folder.Write("weir.yaml", "store: \"" + url + "\"\npolicies: [p.yaml]\n").string());
  };
  const Outcome spread = check("redis+cluster://127.0.0.1:7000");
  EXPECT_EQ(spread.code, 0) << spread.err;
  EXPECT_THAT(spread.err, HasSubstr("warning: policies 'a' and 'b' of domain 'api' never apply"));
  EXPECT_EQ(check("redis+cluster://127.0.0.1:7000?spread=off").err, "");
  EXPECT_EQ(check("redis://127.0.0.1:7000").err, "");
}

TEST(ConfigCheck, WarnsOfAPolicyThatNoRequestMeets) {
  const test::TempDir folder;
  const std::string policies =
      folder
          .Write("p.yaml",
                 std::string(kGood) + "  - {name: b, match: {method: get}, unlimited: true}\n")
          .string();
  const Outcome outcome = Check(policies);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("p.yaml:4:5: policy 'b' applies to no request"));
}

TEST(ConfigCheck, RefusesAValueThatOnlyLooksLikeAPattern) {
  const test::TempDir folder;
  const std::string policies =
      folder
          .Write("p.yaml",
                 std::string(kGood) + "  - {name: b, match: {agent: \"*-bot\"}, unlimited: true}\n")
          .string();
  const Outcome outcome = Check(policies);
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("match.agent: '*-bot' looks like a wildcard"));
}

TEST(ConfigCheck, RefusesAnEmptyFileWhereverItIsNamed) {
  const test::TempDir folder;
  const std::string policies = folder.Write("p.yaml", "").string();
  const Outcome alone = Check(policies);
  EXPECT_EQ(alone.code, 1) << alone.out;
  EXPECT_THAT(alone.err, HasSubstr(policies + ": is empty; write \"policies: []\""));
  EXPECT_EQ(alone.out, "");
  const Outcome named = Check(folder.Write("weir.yaml", "policies: [p.yaml]\n").string());
  EXPECT_EQ(named.code, 1);
  EXPECT_THAT(named.err, HasSubstr("p.yaml: is empty; write"));
  EXPECT_EQ(named.out, "");  // a file that is invalid as a whole is not ok
  folder.Write("p.yaml", "policies: []\n");
  EXPECT_THAT(Check(folder.Write("weir.yaml", "policies: [p.yaml]\n").string()).out,
              HasSubstr("weir.yaml: ok\n0 policies in 1 file: ok\n"));
}

TEST(ConfigCheck, SaysFileLineAndColumnOfWhatIsWrong) {
  const test::TempDir folder;
  const std::string policies =
      folder.Write("p.yaml", "policies:\n  - name: a\n    mach: {}\n    unlimited: true\n")
          .string();
  const std::string config =
      folder.Write("weir.yaml", "policies: [p.yaml]\nthreads: some\n").string();
  const Outcome of_policies = Check(policies);
  EXPECT_EQ(of_policies.code, 1);
  EXPECT_THAT(of_policies.err,
              HasSubstr(policies + ":3:5: unknown field 'mach' in policy; did you mean 'match'?"));
  const Outcome of_config = Check(config);
  EXPECT_EQ(of_config.code, 1);
  EXPECT_THAT(of_config.err, HasSubstr(config + ":2:10: threads: expected a whole number"));
  // For a valid configuration, the policy files that it names are checked as well.
  folder.Write("weir.yaml", "policies: [p.yaml]\n");
  EXPECT_THAT(Check(config).err, HasSubstr("p.yaml:3:5"));
}

TEST(ConfigCheck, ReadsTheEnvironmentAsTheServiceDoes) {
  const test::TempDir folder;
  const std::string config = folder.Write("weir.yaml", "listen: {http: 0.0.0.0:8080}\n").string();
  const Outcome without_key = Check(config);
  EXPECT_EQ(without_key.code, 1);
  EXPECT_THAT(without_key.err, HasSubstr("admin.keys"));
  const Outcome with_key = Check(config, {"WEIR_ADMIN_KEYS=0123456789abcdef"});
  EXPECT_EQ(with_key.code, 0) << with_key.err;
  // Other programs set names like ours, so this is not an error.
  const Outcome slip = Check(config, {"WEIR_ADMIN_KEYS=0123456789abcdef", "WEIR_STOR=memory:"});
  EXPECT_EQ(slip.code, 0) << slip.err;
  EXPECT_THAT(slip.err, HasSubstr("unknown setting WEIR_STOR; did you mean WEIR_STORE?"));
}

TEST(ConfigImport, PrintsPoliciesThatAreOkAsTheyAre) {
  const test::TempDir folder;
  const std::string envoy = folder
                                .Write("ratelimit.yaml",
                                       "domain: shop\ndescriptors:\n  - key: user\n"
                                       "    rate_limit: {unit: minute, requests_per_unit: 5}\n")
                                .string();
  test::WeirProcess import({"config", "import", envoy});
  ASSERT_EQ(import.process().Wait().value_or(-1), 0) << import.process().error_output();
  const std::string printed = import.process().output();
  EXPECT_THAT(printed, HasSubstr("domain: \"shop\""));
  const Outcome outcome = Check(folder.Write("policies.yaml", printed).string());
  EXPECT_EQ(outcome.code, 0) << outcome.err << printed;
  EXPECT_THAT(outcome.out, HasSubstr("1 policy in 1 file: ok"));
}

TEST(ConfigCheck, AMissingFileIsNamed) {
  const Outcome missing = Check("/nonexistent/weir.yaml");
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("/nonexistent/weir.yaml: cannot be read"));
}

TEST(ConfigCheck, WarnsOfAFileOfEnvoysThatLimitsNothing) {
  const test::TempDir folder;
  const std::string file =
      folder
          .Write(
              "envoy.yaml",
              "filter:\n"
              "  \"@type\": type.googleapis.com/envoy.extensions.filters.http.rate_limit_quota.v3."
              "RateLimitQuotaFilterConfig\n"
              "  domain: edge\n")
          .string();
  test::WeirProcess weir({"config", "check", "--envoy", file});
  EXPECT_EQ(weir.process().Wait().value_or(-1), 1);
  EXPECT_THAT(weir.process().error_output(),
              HasSubstr("warning: " + file + ":2:3: rlqs_server is missing"));
  EXPECT_THAT(weir.process().output(), HasSubstr("1 rate_limit_quota filter(s), 2 warning(s)"));
}

// The cost of a denied request differs from envoyproxy/ratelimit, so it is reported where files
// are imported.
TEST(ConfigImport, SaysHowTheImportedLimitsCharge) {
  const test::TempDir folder;
  const std::string limits =
      "domain: d\n"
      "descriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 3 } }]\n";
  const auto import = [&](const std::string& text) {
    const std::string file = folder.Write("limits.yaml", text).string();
    test::WeirProcess weir({"config", "import", "--from", "envoy", file});
    const int code = weir.process().Wait().value_or(-1);
    return Outcome{code, weir.process().output(), weir.process().error_output()};
  };
  const Outcome usual = import(limits);
  EXPECT_EQ(usual.code, 0) << usual.err;
  EXPECT_THAT(usual.out, HasSubstr("charge: reports\n"));
  EXPECT_THAT(usual.err, HasSubstr("note: when one limit refuses a request, the others"));
  EXPECT_THAT(usual.err, HasSubstr("charge: always"));
  const Outcome chosen = import("charge: always\n" + limits);
  EXPECT_THAT(chosen.out, HasSubstr("charge: always\n"));
  EXPECT_EQ(chosen.err, "");
}

constexpr const char* kOfEnvoy =
    "domain: d\n"
    "descriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 3 } }]\n";

TEST(ConfigCheck, SaysHowAFileOfEnvoysServiceCharges) {
  const test::TempDir folder;
  const std::string limits = folder.Write("limits.yaml", kOfEnvoy).string();
  for (const std::string& file :
       {limits, folder.Write("weir.yaml", "policies: [limits.yaml]\n").string()}) {
    const Outcome usual = Check(file);
    EXPECT_EQ(usual.code, 0) << usual.err;
    EXPECT_THAT(usual.err,
                HasSubstr("note: " + limits + ":\n      when one limit refuses a request"));
    EXPECT_THAT(usual.err, HasSubstr("charge: always\n"));
  }
  const auto chosen = folder.Write("chosen.yaml", std::string("charge: reports\n") + kOfEnvoy);
  EXPECT_EQ(Check(chosen.string()).err, "");
  EXPECT_EQ(Check(folder.Write("own.yaml", kGood).string()).err, "");
}

TEST(Serve, LogsOnceHowAFileOfEnvoysServiceCharges) {
  const test::TempDir folder;
  const std::string limits = folder.Write("limits.yaml", kOfEnvoy).string();
  const std::string own = folder.Write("own.yaml", kGood).string();
  test::WeirProcess weir({"serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off",
                          "--policies", limits + "," + own, "--data", folder / "data"});
  weir.Port("http");
  const auto count = [&](const std::string& text) {
    const std::string log = weir.process().error_output();
    int found = 0;
    for (std::size_t at = 0; (at = log.find(text, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("when one limit refuses a request"), 1) << weir.process().error_output();
  EXPECT_EQ(count("limits.yaml"), 1);
  weir.process().Signal(SIGHUP);
  EXPECT_TRUE(test::WaitUntil([&] { return count("policies reloaded") == 1; }));
  EXPECT_EQ(count("when one limit refuses a request"), 1);
}

}  // namespace
}  // namespace weir
