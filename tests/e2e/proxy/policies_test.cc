// What an operator of a proxy sees of its policies: metrics, log lines and warnings.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/http_client.h"
#include "support/nginx_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Policy(const std::string& route, const std::string& limit, const std::string& more) {
  return "policies:\n  - name: pay\n    match: { route: '" + route +
         "' }\n    quota: { fixed_window: { limit: " + limit + ", window: 1h } }\n" + more;
}

class ProxyPolicies : public ::testing::Test {
 protected:
  std::vector<std::string> Args() const {
    return {"proxy",       "--upstream",   "http://127.0.0.1:" + std::to_string(upstream_.port()),
            "--data",      dir_ / "data",  "--listen",
            "127.0.0.1:0", "--admin",      "127.0.0.1:0",
            "--policies",  dir_ / "p.yaml"};
  }

  NginxServer upstream_{"location / { return 200 ok; }"};
  TempDir dir_;
};

TEST_F(ProxyPolicies, WhatAShadowPolicyWouldRefuseIsCountedAndLogged) {
  dir_.Write("p.yaml", Policy("/api/*", "2", "    shadow: true\n"));
  WeirProcess weir(Args());
  HttpClient client(weir.Port("proxy"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client.Get("/api/x").status, 200);
  const auto line = weir.process().WaitForError("limited in shadow");
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, AllOf(HasSubstr("door=\"proxy\""), HasSubstr("route:/api/x"),
                           HasSubstr("policy=\"pay\"")));
  HttpClient admin(weir.Port("admin"));
  const std::string metrics = admin.Get("/metrics").body;
  const std::string labels = "{domain=\"default\",policy=\"pay\"} ";
  EXPECT_THAT(metrics, HasSubstr("\nweir_policy_shadow_blocked_total" + labels + "3\n"));
  EXPECT_THAT(metrics, HasSubstr("\nweir_policy_allowed_total" + labels + "2\n"));
  EXPECT_THAT(metrics, HasSubstr("\nweir_allowed_total 5\n"));
  for (const char* const name :
       {"weir_check_errors_total", "weir_degraded_total", "weir_unmatched_total",
        "weir_connections_rejected_total", "weir_policies_not_applied"}) {
    EXPECT_THAT(metrics, HasSubstr(std::string("\n") + name + " 0\n"));
  }
  const HttpResponse none = admin.Get("/admin/top");
  EXPECT_EQ(none.status, 404);
  EXPECT_THAT(none.body, AllOf(HasSubstr("GET /metrics"), Not(HasSubstr("/admin/routes"))));
}

TEST_F(ProxyPolicies, TheMetricsSayThatAFileIsInvalid) {
  dir_.Write("p.yaml", Policy("/api/*", "3", ""));
  WeirProcess weir(Args());
  HttpClient admin(weir.Port("admin"));
  EXPECT_THAT(admin.Get("/metrics").body, HasSubstr("\nweir_policy_reload_success 1\n"));
  dir_.Write("p.yaml", Policy("/api/*", "three", ""));
  EXPECT_TRUE(weir.process().WaitForError("policies not reloaded"));
  EXPECT_THAT(admin.Get("/metrics").body, HasSubstr("\nweir_policy_reload_success 0\n"));
  dir_.Write("p.yaml", Policy("/api/*", "30", ""));
  EXPECT_TRUE(weir.process().WaitForError("policies reloaded"));
  EXPECT_THAT(admin.Get("/metrics").body, HasSubstr("\nweir_policy_reload_success 1\n"));
}

TEST_F(ProxyPolicies, ARouteThatCanBeEvadedIsWarnedOf) {
  dir_.Write("p.yaml", Policy("/V1/Pay/", "3", ""));
  WeirProcess weir(Args());
  (void)weir.Port("proxy");
  EXPECT_TRUE(weir.process().WaitForError("write '/v1/pay'"));
  EXPECT_THAT(weir.process().error_output(), HasSubstr("questionable policy"));
}

}  // namespace
}  // namespace weir::test
