// Client certificates, on every endpoint of the program. A role is given to the single common name
// of a subject; a certificate from which two names could be read gets no role. And a browser
// presents its certificate for requests made by any site's page.

#include "support/certificates.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "e2e/service/fixture.h"
#include "weir/v1/weir.grpc.pb.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;
using Pair = Certificates::Pair;

std::string TextOf(const std::filesystem::path& file) {
  std::ifstream in(file);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

class ClientCertificates : public ServiceTest {
 protected:
  /// `gateway` may check, `boss` may do everything, and no one else anything.
  void SetUp() override {
    ServiceTest::SetUp();
    const Pair server = made_.Issue("localhost", "server");
    const auto config = dir_.Write("weir.yaml", "tls: {cert: " + server.certificate.string() +
                                                    ", key: " + server.key.string() +
                                                    ", client_ca: " + made_.authority().string() +
                                                    "}\n"
                                                    "access:\n"
                                                    "  open: [none]\n"
                                                    "  subjects:\n"
                                                    "    - {name: gateway, roles: [check]}\n"
                                                    "    - {name: boss, roles: [admin]}\n");
    Serve({"--config", config.string(), "--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:0"});
  }

  /// `more`: arguments for curl.
  std::string Http(const Pair& who, const std::string& path, const std::string& body = {},
                   const std::vector<std::string>& more = {}) {
    const std::string url = "https://localhost:" + std::to_string(weir_->Port("http")) + path;
    std::vector<std::string> arguments = {"curl",       "-s",
                                          "-o",         "/dev/null",
                                          "-w",         "%{http_code}",
                                          "--max-time", "30",
                                          "--noproxy",  "*",
                                          "--cacert",   made_.authority().string(),
                                          "--cert",     who.certificate.string(),
                                          "--key",      who.key.string(),
                                          url};
    if (!body.empty()) arguments.insert(arguments.end(), {"-d", body});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(std::move(arguments)).output;
  }

  ::grpc::StatusCode Grpc(const Pair& who) {
    const auto credentials = ::grpc::SslCredentials({.pem_root_certs = TextOf(made_.authority()),
                                                     .pem_private_key = TextOf(who.key),
                                                     .pem_cert_chain = TextOf(who.certificate)});
    const auto stub = v1::Limiter::NewStub(
        ::grpc::CreateChannel("localhost:" + std::to_string(weir_->Port("grpc")), credentials));
    ::grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 30s);
    v1::CheckRequest request;
    request.set_key("a");
    v1::CheckResponse response;
    return stub->Check(&context, request, &response).error_code();
  }

  std::string Resp(const Pair& who) {
    return RunProgram({"redis-cli", "-h", "localhost", "-p", std::to_string(weir_->Port("resp")),
                       "--tls", "--cacert", made_.authority().string(), "--cert",
                       who.certificate.string(), "--key", who.key.string(), "CL.THROTTLE", "a",
                       "15", "30", "60"})
        .output;
  }

  Certificates made_;
};

constexpr const char* kCheck = R"({"key":"a"})";

TEST_F(ClientCertificates, ASubjectWithTwoCommonNamesGetsTheRoleOfNeither) {
  int number = 0;
  for (const char* const names : {"gateway/CN=boss", "boss/CN=gateway", "gateway/CN=gateway"}) {
    SCOPED_TRACE(names);
    const Pair both = made_.Issue(names, "both" + std::to_string(++number));
    EXPECT_EQ(Http(both, "/v1/check", kCheck), "401");
    EXPECT_EQ(Http(both, "/admin/status"), "401");
    EXPECT_EQ(Grpc(both), ::grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_THAT(Resp(both), HasSubstr("NOAUTH"));
  }
}

TEST_F(ClientCertificates, AlternativeNamesGiveNoRoleAndTakeNoneAway) {
  const Pair other = made_.Issue("other", "other", "DNS:boss,DNS:gateway");
  EXPECT_EQ(Http(other, "/v1/check", kCheck), "401");
  EXPECT_EQ(Grpc(other), ::grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(Resp(other), HasSubstr("NOAUTH"));
  // The single common name counts, whatever other names the certificate has.
  const Pair gateway = made_.Issue("gateway", "gateway", "DNS:boss");
  EXPECT_EQ(Http(gateway, "/v1/check", kCheck), "200");
  EXPECT_EQ(Http(gateway, "/admin/status"), "403");
  EXPECT_EQ(Grpc(gateway), ::grpc::StatusCode::OK);
  EXPECT_THAT(Resp(gateway), StartsWith("0\n16\n"));
}

struct Call {
  const char* path;
  const char* body;
};

// Calls that only a certificate with the role may make here.
constexpr Call kChanges[] = {
    {"/v1/check", kCheck},
    {"/v1/refund", kCheck},
    {"/v1/release", R"({"key":"a","lease":1})"},
    {"/v1/settle", R"({"reservation":"AA","cost":1})"},
    {"/api/send", R"({"userId":"u","message":"m"})"},
    {"/api/v1/slots", R"({"eventId":"e","configName":"c"})"},
    {"/api/v1/slots/claim", R"({"config":"c"})"},
    {"/api/v1/slots/e/restore", "{}"},
};

TEST_F(ClientCertificates, APageOfAnotherSiteCannotUseTheCertificateOfItsReader) {
  const Pair boss = made_.Issue("boss", "boss");
  const std::string own = "Origin: https://localhost:" + std::to_string(weir_->Port("http"));
  for (const Call& call : kChanges) {
    SCOPED_TRACE(call.path);
    EXPECT_EQ(Http(boss, call.path, call.body, {"-H", "Origin: https://evil.example"}), "403");
    EXPECT_EQ(Http(boss, call.path, call.body, {"-H", "Sec-Fetch-Site: cross-site"}), "403");
    EXPECT_NE(Http(boss, call.path, call.body, {"-H", own}), "403");
    EXPECT_NE(Http(boss, call.path, call.body), "403");
  }
  EXPECT_EQ(Http(boss, "/api/v1/slots/e", {}, {"-X", "DELETE", "-H", "Origin: null"}), "403");
}

TEST_F(ClientCertificates, AProxyWithACertificateMayAskAboutABrowser) {
  const Pair gateway = made_.Issue("gateway", "gateway");
  EXPECT_EQ(Http(gateway, "/v1/auth", {}, {"-H", "Origin: https://elsewhere.example"}), "200");
}

}  // namespace
}  // namespace weir::test
