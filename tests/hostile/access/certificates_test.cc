// Client certificates with more than one name, on every door of the program. A role is given to the
// one common name of a subject; a certificate from which two names could be read gets no role.

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

class TwoNames : public ServiceTest {
 protected:
  /// `gateway` may check, `boss` may do everything, and nobody else anything.
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

  std::string Http(const Pair& who, const std::string& path, const std::string& body = {}) {
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

TEST_F(TwoNames, ASubjectWithTwoCommonNamesGetsTheRoleOfNeither) {
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

TEST_F(TwoNames, AlternativeNamesGiveNoRoleAndTakeNoneAway) {
  const Pair other = made_.Issue("other", "other", "DNS:boss,DNS:gateway");
  EXPECT_EQ(Http(other, "/v1/check", kCheck), "401");
  EXPECT_EQ(Grpc(other), ::grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(Resp(other), HasSubstr("NOAUTH"));
  // The one common name counts, whatever else the certificate is good for.
  const Pair gateway = made_.Issue("gateway", "gateway", "DNS:boss");
  EXPECT_EQ(Http(gateway, "/v1/check", kCheck), "200");
  EXPECT_EQ(Http(gateway, "/admin/status"), "403");
  EXPECT_EQ(Grpc(gateway), ::grpc::StatusCode::OK);
  EXPECT_THAT(Resp(gateway), StartsWith("0\n16\n"));
}

}  // namespace
}  // namespace weir::test
