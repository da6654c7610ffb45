// Bearer tokens of an identity provider and client certificates, on every endpoint of the program:
// their claims count, forged or expired ones do not, and the audit log names their holders.

#include <grpcpp/grpcpp.h>

#include <ctime>

#include "e2e/service/fixture.h"
#include "support/certificates.h"
#include "support/tcp_connection.h"
#include "support/token_issuer.h"
#include "weir/v1/weir.grpc.pb.h"

namespace weir::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

std::string Claims(const std::string& roles, std::time_t lasts = 600,
                   const std::string& issuer = "https://login.example.com",
                   const std::string& audience = "weir") {
  return R"({"iss":")" + issuer + R"(","aud":")" + audience + R"(","sub":"alice","exp":)" +
         std::to_string(std::time(nullptr) + lasts) + R"(,"roles":[")" + roles + "\"]}";
}

class Tokens : public ServiceTest {
 protected:
  void ServeTokens(const std::string& jwks, const std::string& more = "") {
    const auto config = dir_.Write("weir.yaml",
                                   "oidc:\n"
                                   "  issuer: https://login.example.com\n"
                                   "  audience: weir\n"
                                   "  jwks: " +
                                       jwks + "\n" + more +
                                       "  roles:\n"
                                       "    - {name: weir-admins, roles: [admin]}\n"
                                       "    - {name: gateways, roles: [check]}\n"
                                       "access: {open: [none]}\n");
    Serve({"--config", config.string(), "--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:0"});
  }

  int Http(const std::string& token, std::string_view method, std::string_view path,
           std::string_view body = {}) {
    HttpClient client = Client();
    HttpHeaders headers = {{"Content-Type", "application/json"}};
    if (!token.empty()) headers.emplace_back("Authorization", "Bearer " + token);
    return client.Send(method, path, body, headers).status;
  }

  ::grpc::StatusCode Grpc(const std::string& token,
                          const std::shared_ptr<::grpc::ChannelCredentials>& credentials =
                              ::grpc::InsecureChannelCredentials()) {
    const auto stub = v1::Limiter::NewStub(
        ::grpc::CreateChannel("localhost:" + std::to_string(weir_->Port("grpc")), credentials));
    ::grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 30s);
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::CheckRequest request;
    request.set_key("a");
    v1::CheckResponse response;
    return stub->Check(&context, request, &response).error_code();
  }

  std::string Resp(const std::string& token) {
    TcpConnection resp(weir_->Port("resp"));
    resp.Send("*2\r\n$4\r\nAUTH\r\n$" + std::to_string(token.size()) + "\r\n" + token + "\r\n");
    return resp.ReadThrough("\r\n");
  }
};

constexpr std::string_view kCheck = R"({"key":"a"})";
constexpr std::string_view kPolicy = R"({"key":"k","type":"TOKEN_BUCKET","capacity":1})";

TEST_F(Tokens, CountOnEveryDoorForTheRolesThatTheirClaimsGive) {
  const Issuer issuer("RS256");
  ServeTokens(dir_.Write("jwks.json", issuer.Set()).string());
  const std::string gateway = issuer.Sign(Claims("gateways"));
  const std::string admin = issuer.Sign(Claims("weir-admins"));
  EXPECT_EQ(Http("", "POST", "/v1/check", kCheck), 401);
  EXPECT_EQ(Http(gateway, "POST", "/v1/check", kCheck), 200);
  EXPECT_EQ(Http(gateway, "POST", "/admin/policies", kPolicy), 403);
  EXPECT_EQ(Http(admin, "POST", "/admin/policies", kPolicy), 201);
  EXPECT_EQ(Grpc(""), ::grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Grpc(gateway), ::grpc::StatusCode::OK);
  EXPECT_THAT(Resp(gateway), StartsWith("+OK"));
  // The audit log names the person, not a digest that changes with each token.
  HttpClient client = Client();
  EXPECT_THAT(client.Get("/admin/audit", {{"X-Weir-Key", admin}}).body,
              HasSubstr("token alice from 127.0.0.1"));
}

TEST_F(Tokens, ForgedOnesAreWrongKeysOnEveryDoor) {
  const Issuer issuer("ES256");
  const Issuer stranger("ES256");
  ServeTokens(dir_.Write("jwks.json", issuer.Set()).string());
  const std::string claims = Claims("weir-admins");
  const std::string unsigned_one = issuer.SignHead(R"({"alg":"none","kid":"k1"})", claims);
  std::string changed = issuer.Sign(Claims("gateways"));
  changed.replace(changed.find('.') + 1, 0, "x");
  int refused = 0;
  for (const std::string& token :
       {stranger.Sign(claims), unsigned_one, changed, issuer.Sign(Claims("weir-admins", -3600)),
        issuer.Sign(Claims("weir-admins", 600, "https://other.example.com")),
        issuer.Sign(Claims("weir-admins", 600, "https://login.example.com", "another-service")),
        issuer.Sign(Claims("nobody"))}) {
    refused += Http(token, "GET", "/admin/status") == 401 ? 1 : 0;
  }
  EXPECT_EQ(refused, 7);
  EXPECT_EQ(Grpc(stranger.Sign(claims)), ::grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(Resp(stranger.Sign(claims)), StartsWith("-WRONGPASS"));
  EXPECT_EQ(Http(issuer.Sign(claims), "GET", "/admin/status"), 200);
}

/// Serves one folder over https, as an issuer serves its keys.
constexpr const char* kIssuer = R"(
import functools, http.server, ssl, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[3])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
print("port", server.server_port, flush=True)
server.serve_forever()
)";

TEST_F(Tokens, TheIssuersKeysComeFromItsUrlAndFollowItsRotation) {
  Certificates made;
  const Certificates::Pair pair = made.Issue("localhost", "issuer");
  const Issuer first("RS256", "first");
  const Issuer second("RS256", "second");
  dir_.Write("certs", first.Set());
  ChildProcess server({"python3", "-c", kIssuer, pair.certificate.string(), pair.key.string(),
                       dir_.path().string()});
  const auto line = server.WaitForLine("port ");
  ASSERT_TRUE(line.has_value());
  const std::string url = "https://localhost:" + line->substr(5) + "/certs";
  ServeTokens(url, "  jwks_ca: " + made.authority().string() + "\n");
  EXPECT_EQ(Http(first.Sign(Claims("weir-admins")), "GET", "/admin/status"), 200);
  dir_.Write("certs", second.Set());
  const std::string token = second.Sign(Claims("weir-admins"));
  EXPECT_TRUE(WaitUntil([&] { return Http(token, "GET", "/admin/status") == 200; }));
}

TEST_F(Tokens, AnIssuerWhoseCertificateNobodyVouchesForIsNotBelieved) {
  Certificates made;
  const Certificates::Pair pair = made.Issue("localhost", "issuer");
  const Issuer issuer("RS256");
  dir_.Write("certs", issuer.Set());
  ChildProcess server({"python3", "-c", kIssuer, pair.certificate.string(), pair.key.string(),
                       dir_.path().string()});
  const auto line = server.WaitForLine("port ");
  ASSERT_TRUE(line.has_value());
  ServeTokens("https://localhost:" + line->substr(5) + "/certs");
  EXPECT_TRUE(weir_->process().WaitForError("cannot load the issuer's keys").has_value());
  EXPECT_EQ(Http(issuer.Sign(Claims("weir-admins")), "GET", "/admin/status"), 401);
}

TEST_F(Tokens, CertificatesCountOnGrpcAndRespAsOnHttp) {
  Certificates made;
  const Certificates::Pair server = made.Issue("localhost", "server");
  const Certificates::Pair gateway = made.Issue("gateway", "gateway");
  const Certificates::Pair other = made.Issue("other", "other");
  const auto config = dir_.Write(
      "weir.yaml", "tls: {cert: " + server.certificate.string() + ", key: " + server.key.string() +
                       ", client_ca: " + made.authority().string() +
                       "}\naccess: {subjects: [{name: gateway, roles: [check]}], open: [none]}\n");
  Serve({"--config", config.string(), "--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:0"});
  const auto text = [](const std::filesystem::path& file) {
    std::ifstream in(file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const auto with = [&](const Certificates::Pair& who) {
    return ::grpc::SslCredentials({.pem_root_certs = text(made.authority()),
                                   .pem_private_key = text(who.key),
                                   .pem_cert_chain = text(who.certificate)});
  };
  EXPECT_EQ(Grpc("", with(gateway)), ::grpc::StatusCode::OK);
  EXPECT_EQ(Grpc("", with(other)), ::grpc::StatusCode::UNAUTHENTICATED);
  const auto throttle = [&](const Certificates::Pair& who) {
    return RunProgram({"redis-cli", "-h", "localhost", "-p", std::to_string(weir_->Port("resp")),
                       "--tls", "--cacert", made.authority().string(), "--cert",
                       who.certificate.string(), "--key", who.key.string(), "CL.THROTTLE", "a",
                       "15", "30", "60"})
        .output;
  };
  EXPECT_THAT(throttle(gateway), StartsWith("0\n16\n"));
  EXPECT_THAT(throttle(other), HasSubstr("NOAUTH"));
}

}  // namespace
}  // namespace weir::test
