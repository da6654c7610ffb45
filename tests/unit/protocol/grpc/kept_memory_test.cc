// The memory that methods keep of finished messages: very little, whatever was in them.

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "envoy/service/ratelimit/v3/rls.pb.h"
#include "protocol/grpc/rlqs.h"
#include "protocol/grpc/rls.h"
#include "protocol/grpc/weir_service.h"
#include "unit/protocol/grpc/session_fixture.h"
#include "weir/v1/weir.pb.h"

namespace {

std::atomic<std::size_t> live = 0;

void* Count(void* block) {
  if (block == nullptr) std::abort();
  live += malloc_usable_size(block);
  return block;
}

}  // namespace

// NOLINTBEGIN(cppcoreguidelines-no-malloc)
void* operator new(std::size_t size) { return Count(std::malloc(size)); }
void* operator new[](std::size_t size) { return Count(std::malloc(size)); }
void operator delete(void* block) noexcept {
  live -= malloc_usable_size(block);
  std::free(block);
}
void operator delete[](void* block) noexcept { operator delete(block); }
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }
void operator delete[](void* block, std::size_t) noexcept { operator delete(block); }
// NOLINTEND(cppcoreguidelines-no-malloc)

namespace weir::grpc::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

/// Admits everything, with a verdict for each descriptor, immediately or when told to.
class LaxLimiter final : public limiter::Limiter {
 public:
  void Decide(std::span<limiter::Check> checks, store::Done done) override {
    for (limiter::Check& check : checks) check.verdicts.resize(check.request.descriptors.size());
    if (later_) return waiting_.push_back(std::move(done));
    done();
  }
  void Apply(std::span<store::Application>, store::Done done) override { done(); }

  void AnswerLater() { later_ = true; }
  void AnswerAll() {
    later_ = false;
    for (const store::Done& done : std::exchange(waiting_, {})) done();
  }

 private:
  bool later_ = false;
  std::vector<store::Done> waiting_;
};

class KeptMemoryTest : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    AddWeirService(services_, decider_);
    services_.Add(std::string(kShouldRateLimitPath), MakeShouldRateLimit(decider_, {}));
    services_.Add(std::string(kStreamRateLimitQuotasPath), MakeStreamRateLimitQuotas(streams_));
    services_.OnBurstEnd([this] { decider_.Flush(); });
    // The tables of the first call remain allocated.
    EXPECT_EQ(Ask("/weir.v1.Limiter/CheckBatch", Framed("")), "0");
  }
  ~KeptMemoryTest() override { server_.reset(); }

  /// On a new connection, since a client keeps its answers.
  std::string Ask(const std::string& path, const std::string& body, const Fields& fields = {}) {
    Restart(options_);
    return CallAndWait(path, body, fields).status();
  }

  /// `count` messages of two bytes each in field 2.
  static std::string Empties(std::size_t count) {
    std::string bytes;
    for (std::size_t i = 0; i < count; ++i) bytes.append("\x12\0", 2);
    return Framed(bytes);
  }

  SessionOptions options_;
  LaxLimiter limiter_;
  Decider decider_{limiter_};
  limiter::Assignments assignments_;
  QuotaStreams streams_{limiter_, assignments_, clock_};
};

TEST_F(KeptMemoryTest, ARefusedMessageIsFreed) {
  const std::size_t before = live;
  EXPECT_EQ(Ask("/weir.v1.Limiter/CheckBatch", Empties(50'000)), "3");
  EXPECT_EQ(Ask("/weir.v1.Limiter/CheckStream", Empties(50'000)), "3");
  EXPECT_EQ(Ask(std::string(kShouldRateLimitPath), Empties(50'000)), "3");
  EXPECT_EQ(Ask(std::string(kStreamRateLimitQuotasPath), Empties(50'000)), "3");
  Restart({});
  EXPECT_LT(live, before + kMiB);
}

TEST_F(KeptMemoryTest, ARefusedMessageBehindOthersIsFreed) {
  const std::size_t before = live;
  std::string messages;
  for (int i = 0; i < 500; ++i) messages += Framed("");
  EXPECT_EQ(Ask("/weir.v1.Limiter/CheckStream", messages + Empties(50'000)), "3");
  Restart({});
  EXPECT_LT(live, before + kMiB);
}

// A cleared message keeps the memory of each place in its lists.
TEST_F(KeptMemoryTest, MessagesThatAreLargeInDifferentPlacesDoNotAddUp) {
  const std::size_t before = live;
  for (int place = 0; place < 500; ++place) {
    v1::CheckBatchRequest batch;
    for (int i = 0; i <= place; ++i) batch.add_checks()->set_key("k");
    v1::CheckRequest& large = *batch.mutable_checks(place);
    large.clear_key();
    large.set_explain(true);
    for (int i = 0; i < 256; ++i) large.add_descriptors()->add_entries();
    ASSERT_EQ(Ask("/weir.v1.Limiter/CheckBatch", Framed(batch)), "0");
  }
  Restart({});
  EXPECT_LT(live, before + 16 * kMiB);
}

TEST_F(KeptMemoryTest, WhatRefusedMessagesSaidIsForgotten) {
  envoy::service::ratelimit::v3::RateLimitRequest request;
  request.set_domain("d");
  for (int i = 0; i < 200; ++i) {
    auto& limit = *request.add_descriptors()->mutable_limit();
    limit.set_requests_per_unit(1);
    limit.set_unit(envoy::type::v3::SECOND);
  }
  request.add_descriptors()->mutable_limit();  // without a unit
  const std::size_t before = live;
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(Ask(std::string(kShouldRateLimitPath), Framed(request),
                  {{"x-request-id", std::string(100, 'r')}}),
              "3");
  }
  Restart({});
  EXPECT_LT(live, before + kMiB);
}

// About 10 MiB each. Nothing is decided in between.
TEST_F(KeptMemoryTest, WhatIsDecidedInTurnsIsBoundedThoughItsCallsAreGone) {
  services_.OnBurstEnd([this] { (void)decider_.Begin(); });
  v1::CheckBatchRequest batch;
  for (int i = 0; i < 10'000; ++i) batch.add_checks()->set_key("k");
  const std::string body = Framed(batch);
  const std::size_t before = live;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Ask("/weir.v1.Limiter/CheckBatch", body), "");
  EXPECT_LT(live, before + 32 * kMiB);
}

TEST_F(KeptMemoryTest, AfterASlowStoreFewBurstsAreKept) {
  v1::CheckBatchRequest batch;
  for (int i = 0; i < 1'000; ++i) batch.add_checks()->set_key("k");
  const std::string body = Framed(batch);
  const std::size_t before = live;
  limiter_.AnswerLater();
  for (int i = 0; i < 200; ++i) EXPECT_EQ(Ask("/weir.v1.Limiter/CheckBatch", body), "");
  limiter_.AnswerAll();
  Restart({});
  EXPECT_LT(live, before + 80 * kMiB);
}

}  // namespace
}  // namespace weir::grpc::testing
