#include <gmock/gmock.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <map>
#include <thread>

#include "e2e/envoy/fixture.h"
#include "support/certificates.h"
#include "support/wait.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Le;
using ::testing::Pair;

const auto kTwoOfThree = ElementsAre(200, 200, 429);

/// Marks a request as coming from this address, as a proxy in front does.
HttpHeaders From(std::string address) { return {{"x-forwarded-for", std::move(address)}}; }

TEST_F(EnvoyTest, EveryKindOfDescriptorIsLimited) {
  Start();
  EXPECT_THAT(Three("/address"), kTwoOfThree);
  EXPECT_THAT(Three("/address", From("10.1.0.1")), kTwoOfThree);
  EXPECT_THAT(Three("/address", From("10.1.0.2")), kTwoOfThree);
  EXPECT_THAT(Three("/masked", From("10.2.0.1")), kTwoOfThree);
  EXPECT_EQ(Get("/masked", From("10.2.9.9")).status, 429);  // from the same network
  EXPECT_THAT(Three("/masked", From("10.3.0.1")), kTwoOfThree);
  EXPECT_THAT(Three("/masked", From("2001:db8:1:2::1")), kTwoOfThree);
  EXPECT_EQ(Get("/masked", From("2001:db8:1:2:ffff::9")).status, 429);
  EXPECT_THAT(Three("/masked", From("2001:db8:1:3::1")), kTwoOfThree);
  EXPECT_THAT(Three("/dynamic-metadata-action"), kTwoOfThree);
  EXPECT_THAT(Three("/cluster-metadata"), kTwoOfThree);
  EXPECT_THAT(Three("/default-metadata"), kTwoOfThree);
  EXPECT_THAT(Three("/locality-metadata"), ElementsAre(200, 200, 200));  // reported afterwards
  EXPECT_TRUE(WaitUntil([&] { return Left("zone=north") == "\"remaining\":999997"; }));
  EXPECT_THAT(Three("/skips-absent"), kTwoOfThree);
  EXPECT_THAT(Three("/no-match"), kTwoOfThree);
  EXPECT_THAT(Three("/no-match", {{"x-user", "mia"}}), ElementsAre(200, 200, 200));
  EXPECT_THAT(Three("/address-match", From("10.9.0.1")), kTwoOfThree);
  EXPECT_THAT(Three("/address-match", From("10.8.0.1")), ElementsAre(200, 200, 200));
  EXPECT_THAT(Three("/header", {{"x-user", "anna"}}), kTwoOfThree);
  EXPECT_THAT(Three("/header", {{"x-user", "ben"}}), kTwoOfThree);
  EXPECT_THAT(Three("/query?q=1"), kTwoOfThree);
  EXPECT_THAT(Three("/query?q=2"), kTwoOfThree);
  EXPECT_THAT(Three("/generic"), kTwoOfThree);
  EXPECT_THAT(Three("/match", {{"user-agent", "a-bot"}}), kTwoOfThree);
  EXPECT_THAT(Three("/match", {{"user-agent", "a-person"}}), ElementsAre(200, 200, 200));
  EXPECT_THAT(Three("/query-match?debug=1"), kTwoOfThree);
  EXPECT_THAT(Three("/query-match?debug=0"), ElementsAre(200, 200, 200));
  EXPECT_THAT(Three("/clusters"), kTwoOfThree);
  EXPECT_THAT(Three("/metadata"), kTwoOfThree);
  EXPECT_THAT(Three("/dynamic-metadata"), kTwoOfThree);
  EXPECT_THAT(Three("/expression"), kTwoOfThree);
  EXPECT_THAT(Three("/stages"), kTwoOfThree);
  EXPECT_EQ(Left("stage=first"), "\"remaining\":999997");  // the second denies later
  EXPECT_THAT(Three("/own-limit"), kTwoOfThree);
  EXPECT_THAT(Three("/static-limit"), kTwoOfThree);
  EXPECT_THAT(Three("/other-domain", {{"x-user", "anna"}}), ElementsAre(200, 429, 429));
  EXPECT_THAT(Three("/nothing"), ElementsAre(200, 200, 200));
  EXPECT_EQ(envoy_->log(), "");
}

TEST_F(EnvoyTest, EveryFormOfHitsIsCharged) {
  Start();
  const HttpHeaders lena = {{"x-user", "lena"}, {"x-cost", "3"}};
  EXPECT_EQ(Get("/hits-number", lena).status, 200);
  EXPECT_EQ(Left("hits=lena"), "\"remaining\":3");  // of 6
  EXPECT_EQ(Get("/hits-back", lena).status, 200);
  EXPECT_EQ(Left("hits=lena"), "\"remaining\":5");
  EXPECT_EQ(Get("/hits-format", lena).status, 200);
  EXPECT_EQ(Left("hits=lena"), "\"remaining\":2");
  EXPECT_EQ(Get("/hits-number", lena).status, 429);
  // The hits in the filter state are for descriptors without their own.
  EXPECT_EQ(Get("/header", {{"x-user", "nils"}, {"x-hits", "2"}}).status, 200);
  EXPECT_EQ(Left("user=nils"), "\"remaining\":0");
  EXPECT_EQ(Get("/hits-number", {{"x-user", "nils"}, {"x-hits", "5"}}).status, 200);
  EXPECT_EQ(Left("hits=nils"), "\"remaining\":3");
}

TEST_F(EnvoyTest, ARouteMayInheritReplaceAddToOrDropTheLimitsOfItsHost) {
  Start();
  const HttpHeaders inga = {{"Host", "hosted.test"}, {"x-user", "inga"}};
  EXPECT_THAT(Three("/off", inga), ElementsAre(200, 200, 200));
  EXPECT_THAT(Three("/replaces", inga), kTwoOfThree);  // under the user's limit, not the host's
  const HttpHeaders jens = {{"Host", "hosted.test"}, {"x-user", "jens"}};
  EXPECT_THAT(Three("/adds", jens), kTwoOfThree);      // under the user's; two of the host's four
  EXPECT_THAT(Three("/inherits", jens), kTwoOfThree);  // the other two
  EXPECT_THAT(Three("/adds", {{"Host", "hosted.test"}, {"x-user", "kurt"}}),
              ElementsAre(429, 429, 429));
}

TEST_F(EnvoyTest, HeadersComeOnceAndNameNoPolicy) {
  Start();
  const HttpResponse response = Get("/header", {{"x-user", "carla"}});
  int limits = 0;
  for (const auto& [name, value] : response.headers) {
    if (name == "x-ratelimit-limit") ++limits;
    EXPECT_EQ(value.find("name="), std::string::npos) << name << ": " << value;
  }
  EXPECT_EQ(limits, 1);
  EXPECT_EQ(response.Header("x-ratelimit-limit"), "2, 2;w=86400");
  EXPECT_EQ(response.Header("x-ratelimit-remaining"), "1");
  // A window that is not one of Envoy's units.
  EXPECT_EQ(Get("/five-minutes").Header("x-ratelimit-limit"), "2, 2;w=300");
}

TEST_F(EnvoyTest, WhatIsRefusedIsNotChargedElsewhere) {
  Start();
  const HttpHeaders user = {{"x-user", "dora"}};
  EXPECT_THAT(Three("/both", user), kTwoOfThree);
  EXPECT_EQ(Left("plan=both"), "\"remaining\":999998");
}

// With a policy that says so, and with an unmodified file of envoyproxy/ratelimit.
TEST_F(EnvoyTest, ABudgetOfTokensIsChargedAfterwardsAndEnds) {
  Start();
  HttpClient client(open_port_);
  const HttpHeaders user = {{"x-user", "frida"}};
  for (const std::string_view target : {"/tokens", "/spent"}) {
    EXPECT_EQ(client.Get(target, user).status, 200);  // 60 of 100, reported when it is done
    EXPECT_EQ(client.Get(target, user).status, 200);  // 120 of 100
    // The report may still be in flight when the response arrives.
    int served = 2;
    EXPECT_TRUE(WaitUntil([&] {
      const int status = client.Get(target, user).status;
      if (status == 200) ++served;
      return status == 429;
    })) << target;
    EXPECT_LE(served, 20);
    EXPECT_EQ(client.Get(target, {{"x-user", "gerd"}}).status, 200);
  }
}

// As docs/guide/llm-tokens.md says. Reports arrive before later requests on the same connection.
TEST_F(EnvoyTest, WhatIsRefusedIsReportedUnlessTheUpstreamTellsTheHits) {
  Start();
  EXPECT_THAT(Three("/reported"), kTwoOfThree);
  EXPECT_EQ(Get("/generic").status, 200);
  const auto left = [this](const std::string& query, int count) {
    return WaitUntil([&] { return Left(query) == "\"remaining\":" + std::to_string(count); });
  };
  EXPECT_TRUE(left("stage=reported", 1'000'000 - 3 * 5)) << Left("stage=reported");
  EXPECT_TRUE(left("stage=told", 1'000'000 - 2 * 60)) << Left("stage=told");
}

TEST_F(EnvoyTest, OneOfSeveralQuotasSufficesAndEnvoyLearnsWhich) {
  TempDir settings;
  settings.Write("weir.yaml", "grpc: { dynamic_metadata: true }\n");
  Start("10s", {"--config", (settings / "weir.yaml").string()});
  EXPECT_EQ(Get("/quota").Header("x-service"), "one");
  EXPECT_EQ(Get("/quota").Header("x-service"), "two");  // the first has 1 a day, this one 2
  EXPECT_EQ(Get("/quota").status, 429);

  // Checked with no hits first, and reported to the quota that was named: each ends one request
  // late, or later, since the report may still be in flight when the response arrives.
  std::map<std::string, int> served;
  EXPECT_TRUE(WaitUntil([&] {
    const HttpResponse response = Get("/quota-tokens");
    if (response.status == 200) ++served[std::string(response.Header("x-service"))];
    return response.status == 429;
  }));
  EXPECT_THAT(served, ElementsAre(Pair("large", AllOf(Ge(3), Le(20))),
                                  Pair("small", AllOf(Ge(2), Le(20)))));
}

TEST_F(EnvoyTest, WhatIsTooLongToBeDecidedIsRefusedThoughFailuresPass) {
  const std::string config = data_.Write("weir.yaml", "grpc: { max_message: 16384 }\n").string();
  Start("10s", {"--config", config});
  EXPECT_THAT(Three("/header", {{"x-user", std::string(1'000, 'u')}}), kTwoOfThree);
  EXPECT_THAT(Three("/header", {{"x-user", std::string(40'000, 'u')}}), ElementsAre(429, 429, 429));
}

TEST_F(EnvoyTest, WithoutWeirEachListenerDoesAsItIsTold) {
  Start("0.5s");
  HttpClient open(open_port_);
  HttpClient closed(closed_port_);
  EXPECT_TRUE(WaitUntil([&] { return closed.Get("/generic").status == 429; }));
  EXPECT_TRUE(WaitUntil([&] { return open.Get("/generic").status == 429; }));

  weir_->process().Signal(SIGSTOP);
  EXPECT_EQ(open.Get("/generic").status, 200);
  EXPECT_EQ(closed.Get("/generic").status, 500);
  weir_->process().Signal(SIGCONT);
  EXPECT_TRUE(WaitUntil([&] { return closed.Get("/generic").status == 429; }));

  weir_->process().Kill();
  EXPECT_EQ(open.Get("/generic").status, 200);
  EXPECT_EQ(closed.Get("/generic").status, 500);
  StartWeir();
  const HttpHeaders user = {{"x-user", "hugo"}};
  EXPECT_TRUE(WaitUntil([&] { return closed.Get("/both", user).status == 200; }));
}

constexpr std::string_view kTls = R"(
      transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
          sni: localhost
          common_tls_context:
            validation_context: { trusted_ca: { filename: AUTHORITY } }
)";

TEST_F(EnvoyTest, SpeaksTlsToWeir) {
  Certificates made;
  const Certificates::Pair server = made.Issue("localhost", "server");
  Start("10s", {"--tls-cert", server.certificate.string(), "--tls-key", server.key.string()},
        Replaced(std::string(kTls), "AUTHORITY", made.authority().string()));
  EXPECT_THAT(Three("/generic"), kTwoOfThree);
}

TEST_F(EnvoyTest, ShowsItsOwnCertificateToWeir) {
  Certificates made;
  const Certificates::Pair server = made.Issue("localhost", "server");
  const Certificates::Pair client = made.Issue("envoy", "client");
  TempDir settings;
  settings.Write("weir.yaml", "tls: { client_ca: " + made.authority().string() + " }\n");
  const std::string tls = Replaced(std::string(kTls), "AUTHORITY", made.authority().string());
  const std::string own = "            tls_certificates: [{ certificate_chain: { filename: " +
                          client.certificate.string() +
                          " }, private_key: { filename: " + client.key.string() + " } }]\n";
  Start("10s",
        {"--config", (settings / "weir.yaml").string(), "--tls-cert", server.certificate.string(),
         "--tls-key", server.key.string()},
        tls + own);
  EXPECT_THAT(Three("/generic"), kTwoOfThree);
}

TEST_F(EnvoyTest, WithoutACertificateEnvoyIsNotServed) {
  Certificates made;
  const Certificates::Pair server = made.Issue("localhost", "server");
  TempDir settings;
  settings.Write("weir.yaml", "tls: { client_ca: " + made.authority().string() + " }\n");
  Start("10s",
        {"--config", (settings / "weir.yaml").string(), "--tls-cert", server.certificate.string(),
         "--tls-key", server.key.string()},
        Replaced(std::string(kTls), "AUTHORITY", made.authority().string()));
  EXPECT_EQ(HttpClient(closed_port_).Get("/generic").status, 500);
  EXPECT_THAT(Three("/generic"), ElementsAre(200, 200, 200));
}

// Users with a limit of two requests a day send three each, on four connections in parallel.
// WEIR_ENVOY_REQUESTS makes it shorter or longer.
TEST_F(EnvoyTest, FiftyThousandRequestsAreCountedExactly) {
  Start();
  const char* given = std::getenv("WEIR_ENVOY_REQUESTS");  // NOLINT(concurrency-mt-unsafe)
  constexpr int kConnections = 4;
  const int users = (given != nullptr ? std::atoi(given) : 50'000) / 3 / kConnections + 1;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  threads.reserve(kConnections);
  for (int t = 0; t < kConnections; ++t) {
    threads.emplace_back([this, t, users, &wrong] {
      HttpClient client(open_port_);
      for (int i = 0; i < users; ++i) {
        const std::string user = std::to_string(t) + "-" + std::to_string(i);
        for (const int expected : {200, 200, 429}) {
          if (client.Get("/both", {{"x-user", user}}).status != expected) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  // Of the common limit, exactly the admitted requests are used.
  const std::int64_t left = 1'000'000 - std::int64_t{2} * kConnections * users;
  EXPECT_EQ(Left("plan=both"), "\"remaining\":" + std::to_string(left));
  EXPECT_EQ(envoy_->log(), "");
}

}  // namespace
}  // namespace weir::test
