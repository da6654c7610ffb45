#include "protocol/grpc/reflection.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/descriptor_database.h>

#include <algorithm>
#include <set>
#include <string>

#include "envoy/service/rate_limit_quota/v3/rlqs.pb.h"
#include "envoy/service/ratelimit/v3/rls.pb.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "unit/protocol/grpc/session_fixture.h"
#include "weir/v1/weir.pb.h"

namespace weir::grpc::testing {
namespace {

using ::testing::Contains;

template <typename Types>
class ReflectionTest : public SessionTest {
 protected:
  using Request = typename Types::Request;
  using Response = typename Types::Response;

  void SetUp() override {
    SessionTest::SetUp();
    // Files are known once their code is linked, as it is wherever their services are served.
    ASSERT_NE(v1::CheckRequest::descriptor(), nullptr);
    ASSERT_NE(envoy::service::ratelimit::v3::RateLimitRequest::descriptor(), nullptr);
    ASSERT_NE(::grpc::health::v1::HealthCheckRequest::descriptor(), nullptr);
    ASSERT_NE(envoy::service::rate_limit_quota::v3::RateLimitQuotaResponse::descriptor(), nullptr);
    AddReflection(services_, {"weir.v1.Limiter"});
  }

  Response Ask(const Request& request) {
    const Answer& answer = CallAndWait(Types::kPath, Framed(request));
    EXPECT_EQ(answer.status(), "0");
    Response response;
    EXPECT_TRUE(response.ParseFromString(answer.messages().at(0)));
    EXPECT_EQ(response.original_request().SerializeAsString(), request.SerializeAsString());
    return response;
  }
};

struct V1 {
  using Request = ::grpc::reflection::v1::ServerReflectionRequest;
  using Response = ::grpc::reflection::v1::ServerReflectionResponse;
  static constexpr const char* kPath = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
};
struct V1Alpha {
  using Request = ::grpc::reflection::v1alpha::ServerReflectionRequest;
  using Response = ::grpc::reflection::v1alpha::ServerReflectionResponse;
  static constexpr const char* kPath =
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
};
using Versions = ::testing::Types<V1, V1Alpha>;
TYPED_TEST_SUITE(ReflectionTest, Versions);

TYPED_TEST(ReflectionTest, ListsTheServices) {
  typename TypeParam::Request request;
  request.set_list_services("");
  const auto response = this->Ask(request);
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  EXPECT_THAT(names, Contains("weir.v1.Limiter"));
  EXPECT_THAT(names, Contains("grpc.reflection.v1.ServerReflection"));
}

TYPED_TEST(ReflectionTest, GivesFilesFromWhichTheSymbolCanBeBuilt) {
  for (const char* symbol :
       {"weir.v1.Limiter", "weir.v1.Limiter.Check", "weir.v1.CheckRequest",
        "envoy.service.ratelimit.v3.RateLimitService", "grpc.health.v1.Health"}) {
    typename TypeParam::Request request;
    request.set_file_containing_symbol(symbol);
    const auto response = this->Ask(request);
    // Like a client does: imports must be available too, in any order.
    google::protobuf::SimpleDescriptorDatabase database;
    for (const auto& bytes : response.file_descriptor_response().file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto file;
      ASSERT_TRUE(file.ParseFromString(bytes));
      database.Add(file);
    }
    google::protobuf::DescriptorPool pool(&database);
    EXPECT_NE(pool.FindFileContainingSymbol(symbol), nullptr) << symbol;
  }
}

TYPED_TEST(ReflectionTest, GivesAFileByItsName) {
  typename TypeParam::Request request;
  request.set_file_by_filename("weir/v1/weir.proto");
  EXPECT_EQ(this->Ask(request).file_descriptor_response().file_descriptor_proto_size(), 1);
}

// It imports google/protobuf/duration.proto, and so does one of its imports.
TYPED_TEST(ReflectionTest, GivesEachFileOnceAndEveryImport) {
  typename TypeParam::Request request;
  request.set_file_by_filename("envoy/service/rate_limit_quota/v3/rlqs.proto");
  const auto response = this->Ask(request);
  std::set<std::string> names;
  std::set<std::string> imports;
  ASSERT_FALSE(response.file_descriptor_response().file_descriptor_proto().empty());
  for (const auto& bytes : response.file_descriptor_response().file_descriptor_proto()) {
    google::protobuf::FileDescriptorProto file;
    ASSERT_TRUE(file.ParseFromString(bytes));
    EXPECT_TRUE(names.insert(file.name()).second) << file.name();
    imports.insert(file.dependency().begin(), file.dependency().end());
  }
  EXPECT_TRUE(std::includes(names.begin(), names.end(), imports.begin(), imports.end()));
}

// A repeated request takes a thousandth of the answer's size.
TYPED_TEST(ReflectionTest, AskedAgainItAnswersTheSame) {
  typename TypeParam::Request request;
  request.set_file_by_filename("envoy/service/rate_limit_quota/v3/rlqs.proto");
  const std::string first = this->Ask(request).SerializeAsString();
  EXPECT_EQ(this->Ask(request).SerializeAsString(), first);
}

TYPED_TEST(ReflectionTest, WhatIsNotHereIsNotFound) {
  typename TypeParam::Request request;
  request.set_file_containing_symbol("no.such.Thing");
  EXPECT_EQ(this->Ask(request).error_response().error_code(), 5);
  request.set_file_by_filename("no.proto");
  EXPECT_EQ(this->Ask(request).error_response().error_code(), 5);
  request.mutable_file_containing_extension()->set_containing_type("weir.v1.CheckRequest");
  EXPECT_EQ(this->Ask(request).error_response().error_code(), 5);
  request.set_all_extension_numbers_of_type("no.such.Thing");
  EXPECT_EQ(this->Ask(request).error_response().error_code(), 5);
}

TYPED_TEST(ReflectionTest, NothingIsExtended) {
  typename TypeParam::Request request;
  request.set_all_extension_numbers_of_type("weir.v1.CheckRequest");
  const auto response = this->Ask(request);
  EXPECT_EQ(response.all_extension_numbers_response().base_type_name(), "weir.v1.CheckRequest");
  EXPECT_EQ(response.all_extension_numbers_response().extension_number_size(), 0);
}

TYPED_TEST(ReflectionTest, AnEmptyQuestionIsAnError) {
  EXPECT_EQ(this->Ask({}).error_response().error_code(), 3);
}

}  // namespace
}  // namespace weir::grpc::testing
