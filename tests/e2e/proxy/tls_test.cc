// TLS on both sides of the built program: curl in front, nginx behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/certificates.h"
#include "support/child_process.h"
#include "support/http_client.h"
#include "support/nginx_server.h"
#include "support/ports.h"
#include "support/temp_dir.h"
#include "support/weir_process.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;

class ProxyTls : public ::testing::Test {
 protected:
  /// nginx with TLS and the directives in `more`.
  NginxServer Secure(const Certificates::Pair& pair, const std::string& more) {
    secure_port_ = FreePort();
    const std::string port = std::to_string(secure_port_);
    return NginxServer("listen 127.0.0.1:" + port + " ssl; listen 127.0.0.2:" + port +
                       " ssl; ssl_certificate " + pair.certificate.string() +
                       "; ssl_certificate_key " + pair.key.string() + "; " + more);
  }

  std::vector<std::string> Args(const std::string& host, std::vector<std::string> more) {
    std::vector<std::string> args = {
        "proxy",      "--upstream", "https://" + host + ":" + std::to_string(secure_port_),
        "--data",     dir_.path(),  "--listen",
        "127.0.0.1:0"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }

  /// A configuration that trusts the authority.
  std::string Trusting() {
    return dir_.Write("weir.yaml",
                      "proxy: { upstream_tls_ca: " + authority_.authority().string() + " }\n");
  }

  TempDir dir_;
  Certificates authority_;
  std::uint16_t secure_port_ = 0;
};

TEST_F(ProxyTls, BothSidesSpeakIt) {
  const NginxServer nginx =
      Secure(authority_.Issue("localhost", "upstream"),
             "client_max_body_size 100m; location = /proto { return 200 $http_x_forwarded_proto; } "
             "location /files/ { alias DIR/files/; }");
  // Larger than every buffer on the path.
  std::string large;
  while (large.size() < (std::size_t{20} << 20U)) large += std::to_string(large.size()) + ",";
  std::filesystem::create_directories(nginx.dir() / "files");
  nginx.dir().Write("files/large", large);
  const Certificates::Pair own = authority_.Issue("localhost", "proxy");
  WeirProcess weir(Args("localhost", {"--config", Trusting(), "--tls-cert", own.certificate,
                                      "--tls-key", own.key, "--per-ip", "5/60m"}));
  const std::string base = "https://localhost:" + std::to_string(weir.Port("proxy"));
  const auto get = [&](const std::string& path, std::vector<std::string> more = {}) {
    std::vector<std::string> argv = {"curl", "-sS", "--cacert", authority_.authority(),
                                     base + path};
    argv.insert(argv.end(), more.begin(), more.end());
    return RunProgram(argv);
  };
  EXPECT_EQ(get("/proto").output, "https");
  EXPECT_EQ(get("/files/large").output, large);
  // Three requests on one connection, two of which are denied.
  const RunResult three = get(
      "/proto", {base + "/proto", base + "/files/large", "-o", "/dev/null", "-w", "%{http_code} "});
  EXPECT_THAT(three.output, HasSubstr("200"));
  EXPECT_THAT(get("/proto", {"-w", "%{http_code}"}).output, HasSubstr("429"));
  // A plaintext request gets no answer.
  EXPECT_NE(RunProgram({"curl", "-sS", "http://127.0.0.1:" + std::to_string(weir.Port("proxy"))})
                .exit_code,
            0);
}

TEST_F(ProxyTls, AnUpstreamThatNobodyVouchesForGetsNothing) {
  const NginxServer nginx =
      Secure(authority_.SelfSigned("localhost", "upstream"), "location / { return 200 hello; }");
  WeirProcess weir(Args("localhost", {"--config", Trusting()}));
  const HttpResponse refused = HttpClient(weir.Port("proxy")).Get("/");
  EXPECT_EQ(refused.status, 502);
  EXPECT_THAT(refused.body, HasSubstr("certificate verify failed"));
  EXPECT_EQ(nginx.AccessLogLines(), 0U);
}

TEST_F(ProxyTls, OneWithAnotherNameGetsNothingUnlessVerificationIsOff) {
  // The authority's certificates are for localhost and 127.0.0.1.
  const NginxServer nginx =
      Secure(authority_.Issue("localhost", "upstream"), "location / { return 200 hello; }");
  {
    WeirProcess weir(Args("127.0.0.2", {"--config", Trusting()}));
    EXPECT_EQ(HttpClient(weir.Port("proxy")).Get("/").status, 502);
  }
  const std::string lax = dir_.Write("lax.yaml", "proxy: { upstream_tls: insecure-no-verify }\n");
  WeirProcess weir(Args("127.0.0.2", {"--config", lax}));
  EXPECT_EQ(HttpClient(weir.Port("proxy")).Get("/").body, "hello");
}

}  // namespace
}  // namespace weir::test
