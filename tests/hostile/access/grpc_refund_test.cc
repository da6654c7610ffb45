// Envoy's protocol can refund permits with negative hits: that requires the same permission as a
// refund.

#include <grpcpp/grpcpp.h>

#include "e2e/service/fixture.h"
#include "envoy/service/ratelimit/v3/rls.grpc.pb.h"

namespace weir::test {
namespace {

using namespace std::chrono_literals;
using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;
using envoy::service::ratelimit::v3::RateLimitService;
using ::testing::HasSubstr;

constexpr const char* kAdmin = "admin-key-0123456789";
constexpr const char* kGate = "gateway-key-0123456789";

class GrpcRefund : public ServiceTest {
 protected:
  ::grpc::StatusCode Ask(bool negative, const std::string& key) {
    const auto stub = RateLimitService::NewStub(::grpc::CreateChannel(
        "localhost:" + std::to_string(weir_->Port("grpc")), ::grpc::InsecureChannelCredentials()));
    ::grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 30s);
    if (!key.empty()) context.AddMetadata("x-weir-key", key);
    RateLimitRequest request;
    request.set_domain("default");
    auto& descriptor = *request.add_descriptors();
    auto& entry = *descriptor.add_entries();
    entry.set_key("user");
    entry.set_value("a");
    descriptor.set_is_negative_hits(negative);
    RateLimitResponse response;
    return stub->ShouldRateLimit(&context, request, &response).error_code();
  }
};

TEST_F(GrpcRefund, NegativeHitsNeedAKeyWhereThereAreKeysAndAreInTheAuditLog) {
  Serve({"--grpc", "127.0.0.1:0", "--config",
         dir_.Write("weir.yaml", "admin: {keys: [" + std::string(kAdmin) +
                                     "]}\naccess: {keys: [\"gateway:check:" + kGate + "\"]}\n")
             .string()});
  EXPECT_EQ(Ask(false, ""), ::grpc::StatusCode::OK);
  EXPECT_EQ(Ask(true, ""), ::grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Ask(true, "no-such-key-0123456789"), ::grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Ask(true, kGate), ::grpc::StatusCode::OK);
  HttpClient client = Client();
  EXPECT_TRUE(WaitUntil([&] {
    const std::string log = client.Get("/admin/audit", {{"X-API-Key", kAdmin}}).body;
    return log.find("check.refund") != std::string::npos && log.find("key ") != std::string::npos;
  }));
}

TEST_F(GrpcRefund, WithoutKeysEverybodyMayAndNoKeyIsInTheAuditLog) {
  Serve({"--grpc", "127.0.0.1:0"});
  EXPECT_EQ(Ask(true, ""), ::grpc::StatusCode::OK);
  EXPECT_EQ(Ask(true, "somebody-elses-key-0123"), ::grpc::StatusCode::OK);
  HttpClient client = Client();
  std::string log;
  EXPECT_TRUE(WaitUntil([&] {
    log = client.Get("/admin/audit").body;
    return log.find("check.refund") != std::string::npos;
  }));
  EXPECT_THAT(log, HasSubstr(R"("who":"127.0.0.1","action":"check.refund")"));
  EXPECT_THAT(log, ::testing::Not(HasSubstr("key ")));
}

}  // namespace
}  // namespace weir::test
