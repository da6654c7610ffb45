#include "policy/envoy_filters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "support/paths.h"

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Shipped() {
  std::ifstream file(test::SourcePath("deploy/envoy/rlqs.yaml"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The shipped file with every occurrence of a text replaced by another.
std::string With(const std::string& what, const std::string& with) {
  std::string text = Shipped();
  EXPECT_NE(text.find(what), std::string::npos) << what;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::vector<std::string> Warnings(const std::string& text) {
  std::vector<yaml::Problem> problems;
  const EnvoyFilters found = CheckEnvoyFilters(text, "envoy.yaml", problems);
  EXPECT_THAT(problems, IsEmpty());
  std::vector<std::string> messages;
  for (const yaml::Problem& warning : found.warnings) messages.push_back(warning.ToString());
  return messages;
}

const std::string kDeny = "fallback_rate_limit: { blanket_rule: DENY_ALL }";
const std::string kNone = "no_assignment_behavior: { " + kDeny + " }";

TEST(EnvoyFilters, TheShippedFileIsRight) {
  std::vector<yaml::Problem> problems;
  const EnvoyFilters found = CheckEnvoyFilters(Shipped(), "rlqs.yaml", problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_THAT(found.warnings, IsEmpty());
  EXPECT_EQ(found.rlqs, 1U);
  EXPECT_EQ(found.rls, 0U);
}

TEST(EnvoyFilters, WarnsOfWhatMakesEnvoyCrash) {
  const std::string bucket =
      "no_assignment_behavior: { fallback_rate_limit: { token_bucket: { max_tokens: 1, "
      "fill_interval: 1s } } }";
  EXPECT_THAT(Warnings(With(kNone, bucket)),
              ElementsAre(HasSubstr("Envoy 1.40 crashes"), HasSubstr("Envoy 1.40 crashes")));
}

TEST(EnvoyFilters, WarnsOfWhatAdmitsEverything) {
  const auto twice = [](const std::string& text) {
    return ElementsAre(HasSubstr(text), HasSubstr(text));
  };
  EXPECT_THAT(Warnings(With(kNone,
                            "no_assignment_behavior: { fallback_rate_limit: { "
                            "blanket_rule: ALLOW_ALL } }")),
              twice("admits everything without an assignment"));
  EXPECT_THAT(Warnings(With(kNone,
                            "no_assignment_behavior: { fallback_rate_limit: { "
                            "requests_per_time_unit: { requests_per_time_unit: 5 } } }")),
              twice("which Envoy 1.40 ignores"));
  EXPECT_THAT(Warnings(With(kNone, "deny_response_settings: {}")),
              twice("no_assignment_behavior is missing"));
  EXPECT_THAT(Warnings(With("on_no_match", "ignored")),
              ElementsAre(HasSubstr("on_no_match is missing")));
  EXPECT_THAT(Warnings(With("rlqs_server", "ignored")),
              ElementsAre(HasSubstr("rlqs_server is missing: every request is admitted")));
}

TEST(EnvoyFilters, WarnsOfWhatGoesOnWithoutWeir) {
  EXPECT_THAT(Warnings(With("expired_assignment_behavior_timeout: 60s", "ignored: 1")),
              ElementsAre(HasSubstr("expired_assignment_behavior_timeout is missing"),
                          HasSubstr("expired_assignment_behavior_timeout is missing")));
  const std::string deny = "60s\n";
  std::string reuse = Shipped();
  const std::size_t at = reuse.find(deny);
  const std::size_t end = reuse.find('\n', at + deny.size());
  const std::size_t next = reuse.find("fallback_rate_limit", at);
  reuse.replace(next, end - next, "reuse_last_assignment: {}");
  EXPECT_THAT(Warnings(reuse), ElementsAre(HasSubstr("reuse_last_assignment admits")));
}

TEST(EnvoyFilters, WarnsOfWhatHasNoEffect) {
  EXPECT_THAT(Warnings(With("reporting_interval: 5s", "reporting_interval: 1s")),
              ElementsAre(HasSubstr("reports every 5 s"), HasSubstr("reports every 5 s")));
}

TEST(EnvoyFilters, WarnsOfAClusterThatGrpcCannotUse) {
  EXPECT_THAT(Warnings(With("http2_protocol_options", "http_protocol_options")),
              ElementsAre(HasSubstr("gRPC needs HTTP/2")));
  EXPECT_THAT(Warnings(With("connection_keepalive", "ignored")),
              ElementsAre(HasSubstr("no connection_keepalive")));
  EXPECT_THAT(Warnings(With("cluster_name: weir }", "cluster_name: wier }")),
              ElementsAre(HasSubstr("cluster wier is not among static_resources.clusters")));
}

TEST(EnvoyFilters, WarnsOfRatelimitFiltersToo) {
  const auto filter = [](const std::string& more) {
    return "http_filters:\n"
           "  - typed_config:\n"
           "      \"@type\": "
           "type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit\n"
           "      domain: edge\n" +
           more;
  };
  const std::string service =
      "      rate_limit_service: { transport_api_version: V3, grpc_service: { envoy_grpc: { "
      "cluster_name: weir } } }\n";
  EXPECT_THAT(Warnings(filter(service + "      failure_mode_deny: true\n      timeout: 1s\n")),
              IsEmpty());
  EXPECT_THAT(Warnings(filter(service)),
              ElementsAre(HasSubstr("failure_mode_deny is not set"), HasSubstr("after 20 ms")));
  EXPECT_THAT(Warnings(filter("      failure_mode_deny: true\n      timeout: 1s\n")),
              ElementsAre(HasSubstr("rate_limit_service.grpc_service is missing")));
}

TEST(EnvoyFilters, WarnsOfBucketsThatNoPolicyCanLimit) {
  const auto bucket = [](const std::string& fields) {
    return "a: {\"@type\": type.googleapis.com/envoy.RateLimitQuotaBucketSettings, " + fields +
           "}\n" +
           "b: {\"@type\": type.googleapis.com/envoy.RateLimitQuotaFilterConfig, domain: d, "
           "bucket_matchers: {on_no_match: {}}, rlqs_server: {google_grpc: {}}}\n";
  };
  const std::string expired =
      "expired_assignment_behavior: {expired_assignment_behavior_timeout: 60s, " + kDeny + "}";
  const std::string id = "bucket_id_builder: {bucket_id_builder: {a: {}}}";
  EXPECT_THAT(Warnings(bucket(id + ", " + kNone + ", " + expired)), IsEmpty());
  EXPECT_THAT(Warnings(bucket(kNone + ", " + expired)),
              ElementsAre(HasSubstr("bucket_id_builder has no entry")));
  EXPECT_THAT(
      Warnings(bucket("bucket_id_builder: {bucket_id_builder: {}}, " + kNone + ", " + expired)),
      ElementsAre(HasSubstr("bucket_id_builder has no entry")));
  std::string many;
  for (int i = 0; i < 17; ++i) many += (i > 0 ? ", e" : "e") + std::to_string(i) + ": {}";
  EXPECT_THAT(Warnings(bucket("bucket_id_builder: {bucket_id_builder: {" + many + "}}, " + kNone +
                              ", " + expired)),
              ElementsAre(HasSubstr("more than 16 entries")));
  // Envoy's number for DENY_ALL is 1.
  EXPECT_THAT(Warnings(bucket(id +
                              ", no_assignment_behavior: {fallback_rate_limit: {blanket_rule: "
                              "1}}, " +
                              expired)),
              IsEmpty());
  EXPECT_THAT(Warnings(bucket(id + ", no_assignment_behavior: {}, " + expired)),
              ElementsAre(HasSubstr("admits everything without an assignment")));
  EXPECT_THAT(Warnings(bucket(id + ", " + kNone)),
              ElementsAre(HasSubstr("expired_assignment_behavior is missing")));
  EXPECT_THAT(
      Warnings(bucket(id + ", " + kNone +
                      ", expired_assignment_behavior: {expired_assignment_behavior_timeout: "
                      "60s, fallback_rate_limit: {blanket_rule: ALLOW_ALL}}")),
      ElementsAre(HasSubstr("expired_assignment_behavior admits")));
}

TEST(EnvoyFilters, WarnsOfFiltersThatDoNothing) {
  const std::string quota = "\"@type\": type.googleapis.com/envoy.RateLimitQuotaFilterConfig";
  EXPECT_THAT(Warnings("a: {" + quota + ", rlqs_server: {google_grpc: {}}}"),
              ElementsAre(HasSubstr("domain is missing"), HasSubstr("bucket_matchers is missing")));
  // A message of another package whose name only has the same ending is ignored.
  EXPECT_THAT(Warnings("a: {\"@type\": type.googleapis.com/my.OtherRateLimitQuotaFilterConfig}"),
              ElementsAre(HasSubstr("no rate limit filter")));
  const std::string rls =
      "{\"@type\": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit, "
      "failure_mode_deny: true, timeout: 1s, rate_limit_service: {transport_api_version: V2, "
      "grpc_service: {envoy_grpc: {cluster_name: weir}}}}";
  // The cluster that both use has HTTP/2 and is checked once; without a stream it may hang.
  EXPECT_THAT(Warnings("static_resources: {clusters: [{name: weir, http2_protocol_options: {}}]}\n"
                       "a: " +
                       rls + "\nb: " + rls),
              ElementsAre(HasSubstr("domain is missing"), HasSubstr("must be V3"),
                          HasSubstr("domain is missing"), HasSubstr("must be V3")));
}

TEST(EnvoyFilters, OfManyWarningsTheFirstHundredAreTold) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text +=
        "f" + std::to_string(i) +
        ": {\"@type\": type.googleapis.com/envoy.RateLimitQuotaFilterConfig, rlqs_server: {}}\n";
  }
  EXPECT_EQ(Warnings(text).size(), 100U);
}

TEST(EnvoyFilters, SaysThatThereIsNone) {
  EXPECT_THAT(Warnings("static_resources: {}\n"), ElementsAre(HasSubstr("no rate limit filter")));
}

TEST(EnvoyFilters, WhatIsNotYamlIsAProblem) {
  std::vector<yaml::Problem> problems;
  const EnvoyFilters found = CheckEnvoyFilters("a: [", "envoy.yaml", problems);
  EXPECT_EQ(problems.size(), 1U);
  EXPECT_THAT(found.warnings, IsEmpty());
}

}  // namespace
}  // namespace weir::policy
