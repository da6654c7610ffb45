// How the command line connects to a service: TLS, keys, timeouts.

#include <fstream>
#include <iterator>

#include "e2e/cli/exit_codes.h"
#include "e2e/service/fixture.h"
#include "support/certificates.h"
#include "support/paths.h"
#include "support/tcp_server.h"

namespace weir::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kKey = "a-secret-of-tests";

class Access : public ServiceTest {
 protected:
  RunResult Weir(std::vector<std::string> words, const std::vector<std::string>& env = {}) {
    words.insert(words.begin(), Program());
    return RunProgram(words, {.env = env});
  }
  std::string Url(const char* scheme) const {
    return std::string("WEIR_URL=") + scheme + "://localhost:" + std::to_string(port_);
  }
};

TEST_F(Access, HttpsNeedsTheAuthorityThatVouchesForTheService) {
  Certificates made;
  const Certificates::Pair server = made.Issue("localhost", "server");
  const Certificates::Pair stranger = made.SelfSigned("localhost", "stranger");
  Serve({"--admin-key", kKey, "--tls-cert", server.certificate.string(), "--tls-key",
         server.key.string()});
  const std::string key = std::string("WEIR_ADMIN_KEY=") + kKey;
  const std::string ca = made.authority().string();
  EXPECT_EQ(Weir({"status", "--ca", ca}, {Url("https"), key}).exit_code, kOk);
  EXPECT_EQ(Weir({"status"}, {Url("https"), key, "WEIR_CA=" + ca}).exit_code, kOk);
  EXPECT_EQ(Weir({"check", "user-1", "--ca", ca}, {Url("https")}).exit_code, kOk);
  const RunResult untrusted = Weir({"status"}, {Url("https"), key});
  EXPECT_EQ(untrusted.exit_code, kUnreachable);
  EXPECT_THAT(untrusted.error_output, HasSubstr("use --ca to give the CA certificate"));
  EXPECT_EQ(Weir({"status", "--ca", stranger.certificate.string()}, {Url("https"), key}).exit_code,
            kUnreachable);
  EXPECT_EQ(Weir({"status"}, {Url("http"), key}).exit_code, kUnreachable);
  EXPECT_EQ(Weir({"status", "--ca", "/no/such/file"}, {Url("https"), key}).exit_code, kUsage);
}

TEST_F(Access, MutualTlsShowsTheClientsCertificate) {
  Certificates made;
  const Certificates::Pair server = made.Issue("localhost", "server");
  const Certificates::Pair me = made.Issue("me", "me");
  const auto config = dir_.Write(
      "weir.yaml", "tls: {cert: " + server.certificate.string() + ", key: " + server.key.string() +
                       ", client_ca: " + made.authority().string() + "}\n");
  Serve({"--config", config.string()});
  const std::string ca = made.authority().string();
  EXPECT_EQ(
      Weir({"status", "--ca", ca, "--cert", me.certificate.string(), "--cert-key", me.key.string()},
           {Url("https")})
          .exit_code,
      kOk);
  EXPECT_EQ(Weir({"status", "--ca", ca}, {Url("https")}).exit_code, kUnreachable);
}

TEST_F(Access, ACertificateHasTheRolesOfItsCommonName) {
  Certificates made;
  const Certificates::Pair server = made.Issue("localhost", "server");
  const Certificates::Pair reader = made.Issue("reader", "reader");
  const Certificates::Pair other = made.Issue("other", "other");
  const auto config = dir_.Write(
      "weir.yaml", "tls: {cert: " + server.certificate.string() + ", key: " + server.key.string() +
                       ", client_ca: " + made.authority().string() +
                       "}\naccess: {subjects: [{name: reader, roles: [read]}]}\n");
  Serve({"--config", config.string()});
  const auto with = [&](const Certificates::Pair& who, std::vector<std::string> words) {
    words.insert(words.end(), {"--ca", made.authority().string(), "--cert",
                               who.certificate.string(), "--cert-key", who.key.string()});
    return Weir(words, {Url("https")}).exit_code;
  };
  EXPECT_EQ(with(reader, {"status"}), kOk);
  EXPECT_EQ(with(reader, {"reset", "user-1"}), kRefused);
  EXPECT_EQ(with(other, {"status"}), kRefused);
  EXPECT_EQ(with(other, {"check", "user-1"}), kOk);
}

TEST_F(Access, TheKeyComesFromAFileOrTheEnvironment) {
  Serve({"--admin-key", kKey});
  const auto file = dir_.Write("key", std::string(kKey) + "\n");
  EXPECT_EQ(Weir({"status"}, {Url("http")}).exit_code, kRefused);
  EXPECT_EQ(Weir({"status", "--key-file", file.string()}, {Url("http")}).exit_code, kOk);
  EXPECT_EQ(Weir({"status"}, {Url("http"), "WEIR_KEY_FILE=" + file.string()}).exit_code, kOk);
  EXPECT_EQ(Weir({"status"}, {Url("http"), std::string("WEIR_KEY=") + kKey}).exit_code, kOk);
  // The file was named explicitly, so the environment is ignored.
  EXPECT_EQ(
      Weir({"status", "--key-file", file.string()}, {Url("http"), "WEIR_KEY=wrong"}).exit_code,
      kOk);
  EXPECT_EQ(Weir({"status", "--key-file", "/no/such/file"}, {Url("http")}).exit_code, kUsage);
  EXPECT_EQ(Weir({"slots", "verify", "--key-file", file.string()}, {Url("http")}).exit_code, kOk);
}

TEST(AccessInTime, AServiceThatDoesNotAnswerIsGivenUpAndTheKeyDoesNotShow) {
  TcpServer silent([](TcpConnection& connection) { connection.ReadAll(); });
  const std::string url = "http://127.0.0.1:" + std::to_string(silent.port());
  const RunResult late = RunProgram({Program(), "status", "--url", url, "--timeout", "0.2"});
  EXPECT_EQ(late.exit_code, kUnreachable);
  EXPECT_THAT(late.error_output, HasSubstr("no response within"));

  ChildProcess waiting({Program(), "status", "--url", url, "--key", kKey, "--timeout", "30"});
  ASSERT_TRUE(WaitUntil([&] { return silent.accepted() == 2; }));
  std::ifstream in("/proc/" + std::to_string(waiting.pid()) + "/cmdline");
  const std::string line(std::istreambuf_iterator<char>(in), {});
  EXPECT_THAT(line, AllOf(HasSubstr("status"), HasSubstr("--key"), Not(HasSubstr(kKey))));
  waiting.Kill();
}

}  // namespace
}  // namespace weir::test
