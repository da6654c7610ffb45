// libgrpc++ against the gRPC endpoint: a third-party client, over real sockets.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "envoy/service/ratelimit/v3/rls.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "limiter/limiter.h"
#include "net/reactor_pool.h"
#include "net/tls.h"
#include "service/grpc_door.h"
#include "support/certificates.h"
#include "weir/v1/weir.grpc.pb.h"

namespace weir::service {
namespace {

using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;
using envoy::service::ratelimit::v3::RateLimitService;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::system_clock;
using ::testing::Contains;
using ::testing::HasSubstr;

/// Denies the user "bad", never answers for "lost", and admits all others.
class StubLimiter final : public limiter::Limiter {
 public:
  void Decide(std::span<limiter::Check> checks, store::Done done) override {
    bool lost = false;
    for (limiter::Check& check : checks) {
      const std::string_view user = check.request.descriptors[0][0].value;
      lost = lost || user == "lost";
      check.decision = {};
      check.decision.limit = 10;
      check.decision.remaining = user == "bad" ? 0 : 9;
      check.decision.reset_after = seconds(30);
      check.policy = "per-user";
      check.applied = true;
      if (user == "bad") {
        check.decision.verdict = Verdict::kLimited;
        check.decision.retry_after = seconds(3);
      }
      limiter::PolicyVerdict verdict;
      verdict.policy = check.policy;
      verdict.quota = &quota_;
      verdict.decision = check.decision;
      check.verdicts.push_back(verdict);
    }
    if (!lost) done();
  }
  void Apply(std::span<store::Application>, store::Done done) override { done(); }

 private:
  const Quota quota_ = *Quota::FixedWindow(10, seconds(60));
};

class LibgrpcClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Serve(nullptr);
    channel_ = ::grpc::CreateChannel(address_, ::grpc::InsecureChannelCredentials());
  }

  void Serve(std::shared_ptr<net::TlsContext> tls) {
    if (pool_) pool_->Stop();
    pool_.reset();
    GrpcDoorOptions options;
    options.tls = std::move(tls);
    options.session.max_message_bytes = 1 << 20;
    door_ = std::make_unique<GrpcDoor>(
        1, [this](net::Reactor&) -> limiter::Limiter& { return limiter_; }, options);
    pool_ = std::make_unique<net::ReactorPool>(net::PoolOptions{1, 1000});
    const Result<net::Endpoint> endpoint = pool_->Listen(*door_, "127.0.0.1:0");
    ASSERT_TRUE(endpoint.ok()) << endpoint.error().message;
    pool_->Start();
    address_ = net::FormatEndpoint(*endpoint);
  }

  void TearDown() override {
    if (pool_) pool_->Stop();
  }

  static v1::CheckRequest CheckOf(const std::string& user) {
    v1::CheckRequest request;
    request.set_domain("api");
    auto& entry = *request.add_descriptors()->add_entries();
    entry.set_key("user");
    entry.set_value(user);
    return request;
  }

  static RateLimitRequest RlsOf(const std::string& user) {
    RateLimitRequest request;
    request.set_domain("api");
    auto& entry = *request.add_descriptors()->add_entries();
    entry.set_key("user");
    entry.set_value(user);
    return request;
  }

  StubLimiter limiter_;
  std::unique_ptr<GrpcDoor> door_;
  std::unique_ptr<net::ReactorPool> pool_;
  std::string address_;
  std::shared_ptr<::grpc::Channel> channel_;
};

TEST_F(LibgrpcClientTest, ShouldRateLimitAnswersWithStatusesAndHeaders) {
  const auto stub = RateLimitService::NewStub(channel_);
  for (const auto& [user, code] :
       {std::pair("42", RateLimitResponse::OK), std::pair("bad", RateLimitResponse::OVER_LIMIT)}) {
    ::grpc::ClientContext context;
    context.set_deadline(system_clock::now() + seconds(20));
    RateLimitResponse response;
    const ::grpc::Status status = stub->ShouldRateLimit(&context, RlsOf(user), &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.overall_code(), code);
    ASSERT_EQ(response.statuses_size(), 1);
    EXPECT_EQ(response.statuses(0).current_limit().requests_per_unit(), 10U);
    EXPECT_EQ(response.response_headers_to_add_size(), 0) << "off unless configured";
  }
}

TEST_F(LibgrpcClientTest, AnErrorCarriesItsCodeAndItsSentence) {
  const auto stub = RateLimitService::NewStub(channel_);
  ::grpc::ClientContext context;
  RateLimitResponse response;
  const ::grpc::Status status = stub->ShouldRateLimit(&context, RateLimitRequest(), &response);
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "rate limit domain must not be empty");
}

TEST_F(LibgrpcClientTest, CheckPeekRefundReleaseAndBatch) {
  const auto stub = v1::Limiter::NewStub(channel_);
  v1::CheckResponse response;
  {
    ::grpc::ClientContext context;
    ASSERT_TRUE(stub->Check(&context, CheckOf("42"), &response).ok());
    EXPECT_EQ(response.verdict(), v1::ALLOWED);
    EXPECT_EQ(response.remaining(), 9);
  }
  {
    ::grpc::ClientContext context;
    ASSERT_TRUE(stub->Peek(&context, CheckOf("bad"), &response).ok());
    EXPECT_EQ(response.verdict(), v1::LIMITED);
    EXPECT_EQ(response.retry_after_ns(), 3'000'000'000);
  }
  {
    ::grpc::ClientContext context;
    ASSERT_TRUE(stub->Refund(&context, CheckOf("42"), &response).ok());
  }
  {
    ::grpc::ClientContext context;
    v1::ReleaseRequest request;
    *request.add_descriptors() = CheckOf("42").descriptors(0);
    request.set_lease(5);
    v1::ReleaseResponse released;
    ASSERT_TRUE(stub->Release(&context, request, &released).ok());
    EXPECT_TRUE(released.released());
  }
  ::grpc::ClientContext context;
  v1::CheckBatchRequest batch;
  for (int i = 0; i < 1000; ++i) *batch.add_checks() = CheckOf(i % 2 == 0 ? "42" : "bad");
  v1::CheckBatchResponse answers;
  ASSERT_TRUE(stub->CheckBatch(&context, batch, &answers).ok());
  ASSERT_EQ(answers.responses_size(), 1000);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(answers.responses(i).verdict(), i % 2 == 0 ? v1::ALLOWED : v1::LIMITED) << i;
  }
}

TEST_F(LibgrpcClientTest, AStreamOfChecksIsAnsweredInOrder) {
  const auto stub = v1::Limiter::NewStub(channel_);
  ::grpc::ClientContext context;
  const auto stream = stub->CheckStream(&context);
  constexpr std::uint64_t kMessages = 2000;
  std::thread writer([&stream] {
    for (std::uint64_t id = 0; id < kMessages; ++id) {
      v1::CheckBatchRequest request;
      request.set_id(id);
      for (int i = 0; i < 20; ++i) *request.add_checks() = CheckOf(std::to_string(i));
      ASSERT_TRUE(stream->Write(request));
    }
    stream->WritesDone();
  });
  v1::CheckBatchResponse response;
  std::uint64_t received = 0;
  while (stream->Read(&response)) {
    EXPECT_EQ(response.id(), received++);
    EXPECT_EQ(response.responses_size(), 20);
  }
  writer.join();
  EXPECT_EQ(received, kMessages);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(LibgrpcClientTest, ADeadlineEndsACallThatIsNotAnswered) {
  const auto stub = v1::Limiter::NewStub(channel_);
  ::grpc::ClientContext context;
  context.set_deadline(system_clock::now() + milliseconds(200));
  v1::CheckResponse response;
  const ::grpc::Status status = stub->Check(&context, CheckOf("lost"), &response);
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::DEADLINE_EXCEEDED);
  ::grpc::ClientContext next;
  EXPECT_TRUE(stub->Check(&next, CheckOf("42"), &response).ok());
}

TEST_F(LibgrpcClientTest, ACancelledStreamIsOverAndTheConnectionLives) {
  const auto stub = ::grpc::health::v1::Health::NewStub(channel_);
  ::grpc::ClientContext context;
  const auto watch = stub->Watch(&context, ::grpc::health::v1::HealthCheckRequest());
  ::grpc::health::v1::HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), ::grpc::health::v1::HealthCheckResponse::SERVING);
  context.TryCancel();
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), ::grpc::StatusCode::CANCELLED);
  ::grpc::ClientContext next;
  ASSERT_TRUE(stub->Check(&next, {}, &response).ok());
}

TEST_F(LibgrpcClientTest, AMessageOverTheLimitIsResourceExhausted) {
  const auto stub = v1::Limiter::NewStub(channel_);
  ::grpc::ClientContext context;
  v1::CheckResponse response;
  const ::grpc::Status status =
      stub->Check(&context, CheckOf(std::string(3 << 20, 'x')), &response);
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("1048576"));
}

TEST_F(LibgrpcClientTest, CompressedMessagesAreRefusedByName) {
  const auto stub = v1::Limiter::NewStub(channel_);
  ::grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  v1::CheckResponse response;
  const ::grpc::Status status = stub->Check(&context, CheckOf(std::string(1000, 'x')), &response);
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("identity"));
}

TEST_F(LibgrpcClientTest, ReflectionListsWhatIsServed) {
  using ::grpc::reflection::v1alpha::ServerReflectionRequest;
  using ::grpc::reflection::v1alpha::ServerReflectionResponse;
  const auto stub = ::grpc::reflection::v1alpha::ServerReflection::NewStub(channel_);
  ::grpc::ClientContext context;
  const auto stream = stub->ServerReflectionInfo(&context);
  ServerReflectionRequest request;
  request.set_list_services("");
  ASSERT_TRUE(stream->Write(request));
  ServerReflectionResponse response;
  ASSERT_TRUE(stream->Read(&response));
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  EXPECT_THAT(names, Contains("envoy.service.ratelimit.v3.RateLimitService"));
  EXPECT_THAT(names, Contains("weir.v1.Limiter"));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

/// One of ten thousand streams of a single channel.
struct OpenStream {
  ::grpc::ClientContext context;
  std::unique_ptr<::grpc::ClientAsyncReaderWriter<v1::CheckBatchRequest, v1::CheckBatchResponse>>
      stream;
  v1::CheckBatchResponse response;
  ::grpc::Status status;
};

TEST_F(LibgrpcClientTest, TenThousandStreamsAreOpenAtOnce) {
  constexpr std::size_t kStreams = 10'000;
  const auto stub = v1::Limiter::NewStub(channel_);
  ::grpc::CompletionQueue queue;
  std::vector<OpenStream> streams(kStreams);
  // Each step is done for all streams before the next begins, so all are open at the same time.
  const auto for_all = [&](const auto& begin) {
    for (std::size_t i = 0; i < kStreams; ++i) begin(streams[i], i);
    for (std::size_t i = 0; i < kStreams; ++i) {
      void* tag = nullptr;
      bool ok = false;
      ASSERT_EQ(queue.AsyncNext(&tag, &ok, system_clock::now() + seconds(60)),
                ::grpc::CompletionQueue::GOT_EVENT);
      ASSERT_TRUE(ok);
    }
  };
  for_all([&](OpenStream& one, std::size_t i) {
    one.stream = stub->PrepareAsyncCheckStream(&one.context, &queue);
    one.stream->StartCall(reinterpret_cast<void*>(i));
  });
  for_all([&](OpenStream& one, std::size_t i) {
    v1::CheckBatchRequest request;
    request.set_id(i);
    *request.add_checks() = CheckOf(std::to_string(i));
    one.stream->Write(request, reinterpret_cast<void*>(i));
  });
  for_all([&](OpenStream& one, std::size_t i) {
    one.stream->Read(&one.response, reinterpret_cast<void*>(i));
  });
  for_all(
      [&](OpenStream& one, std::size_t i) { one.stream->WritesDone(reinterpret_cast<void*>(i)); });
  for_all([&](OpenStream& one, std::size_t i) {
    one.stream->Finish(&one.status, reinterpret_cast<void*>(i));
  });
  for (std::size_t i = 0; i < kStreams; ++i) {
    ASSERT_TRUE(streams[i].status.ok()) << i << ": " << streams[i].status.error_message();
    ASSERT_EQ(streams[i].response.id(), i);
    ASSERT_EQ(streams[i].response.responses_size(), 1);
  }
  queue.Shutdown();
}

TEST_F(LibgrpcClientTest, ADrainingServerTellsWatchersAndLosesNoCall) {
  const auto health = ::grpc::health::v1::Health::NewStub(channel_);
  ::grpc::ClientContext watching;
  const auto watch = health->Watch(&watching, ::grpc::health::v1::HealthCheckRequest());
  ::grpc::health::v1::HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));

  std::atomic<bool> stop = false;
  std::atomic<int> answered = 0;
  std::atomic<int> lost = 0;
  std::thread caller([&] {
    const auto stub = v1::Limiter::NewStub(channel_);
    while (!stop) {
      ::grpc::ClientContext context;
      v1::CheckResponse check;
      const ::grpc::Status status = stub->Check(&context, CheckOf("42"), &check);
      if (status.ok()) {
        ++answered;
      } else if (status.error_code() == ::grpc::StatusCode::UNAVAILABLE) {
        return;  // the server has stopped, and announced it before the call began
      } else {
        ++lost;
      }
    }
  });
  while (answered < 100) std::this_thread::yield();
  EXPECT_TRUE(pool_->Drain(seconds(20)));
  stop = true;
  caller.join();
  EXPECT_EQ(lost, 0);

  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), ::grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), ::grpc::StatusCode::UNAVAILABLE);
}

// The grace period of streams does not start again with each of their messages.
TEST_F(LibgrpcClientTest, AStreamThatNeverPausesIsEndedByADrain) {
  ::grpc::ClientContext context;
  const auto stub = v1::Limiter::NewStub(channel_);
  const auto stream = stub->CheckStream(&context);
  std::atomic<int> answered = 0;
  std::thread caller([&] {
    v1::CheckBatchRequest request;
    *request.add_checks() = CheckOf("42");
    v1::CheckBatchResponse response;
    while (stream->Write(request) && stream->Read(&response)) ++answered;
  });
  while (answered < 100) std::this_thread::yield();
  EXPECT_TRUE(pool_->Drain(seconds(20)));
  caller.join();
  EXPECT_EQ(stream->Finish().error_code(), ::grpc::StatusCode::UNAVAILABLE);
}

std::string Contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class LibgrpcTlsTest : public LibgrpcClientTest {
 protected:
  void ServeTls(bool mutual) {
    const auto pair = certificates_.Issue("localhost", "server");
    net::TlsFiles files;
    files.certificate = pair.certificate;
    files.key = pair.key;
    if (mutual) files.client_ca = certificates_.authority();
    auto context = net::TlsContext::Load(files, {"h2"});
    ASSERT_TRUE(context.ok()) << context.error().message;
    Serve(*context);
  }

  ::grpc::Status Check(const ::grpc::SslCredentialsOptions& options, const std::string& user,
                       v1::CheckResponse& response) {
    const auto channel = ::grpc::CreateChannel(address_, ::grpc::SslCredentials(options));
    const auto stub = v1::Limiter::NewStub(channel);
    ::grpc::ClientContext context;
    context.set_deadline(system_clock::now() + seconds(20));
    return stub->Check(&context, CheckOf(user), &response);
  }

  test::Certificates certificates_;
};

TEST_F(LibgrpcTlsTest, CallsAreServedOverTlsWithAlpn) {
  ServeTls(false);
  ::grpc::SslCredentialsOptions options;
  options.pem_root_certs = Contents(certificates_.authority());
  v1::CheckResponse response;
  const ::grpc::Status status = Check(options, std::string(100'000, 'u'), response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.verdict(), v1::ALLOWED);
}

TEST_F(LibgrpcTlsTest, MutualTlsNeedsACertificateThatTheAuthorityKnows) {
  ServeTls(true);
  ::grpc::SslCredentialsOptions options;
  options.pem_root_certs = Contents(certificates_.authority());
  v1::CheckResponse response;
  EXPECT_EQ(Check(options, "42", response).error_code(), ::grpc::StatusCode::UNAVAILABLE);
  const auto pair = certificates_.Issue("client", "client");
  options.pem_cert_chain = Contents(pair.certificate);
  options.pem_private_key = Contents(pair.key);
  const ::grpc::Status status = Check(options, "42", response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(LibgrpcTlsTest, AStreamOfLargeMessagesPassesThroughTls) {
  ServeTls(false);
  ::grpc::SslCredentialsOptions options;
  options.pem_root_certs = Contents(certificates_.authority());
  const auto stub =
      v1::Limiter::NewStub(::grpc::CreateChannel(address_, ::grpc::SslCredentials(options)));
  ::grpc::ClientContext context;
  context.set_deadline(system_clock::now() + seconds(30));
  const auto stream = stub->CheckStream(&context);
  v1::CheckBatchRequest request;
  for (int i = 0; i < 5000; ++i) *request.add_checks() = CheckOf(std::to_string(i));
  v1::CheckBatchResponse response;
  for (std::uint64_t id = 0; id < 20; ++id) {
    request.set_id(id);
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
    ASSERT_EQ(response.id(), id);
    ASSERT_EQ(response.responses_size(), 5000);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

}  // namespace
}  // namespace weir::service
