// Messages of the rate limit quota service on the streams of a reactor; the input chooses time and
// answers: bytes are cut into records of a kind, a length and that many bytes.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "envoy/service/rate_limit_quota/v3/rlqs.pb.h"
#include "limiter/limiter.h"
#include "protocol/grpc/quota_streams.h"
#include "weir/quota.h"

namespace {

using weir::grpc::QuotaStreams;

const weir::Quota kQuota = *weir::Quota::TokenBucket(1000, 100);

class Moody final : public weir::limiter::Limiter {
 public:
  void Decide(std::span<weir::limiter::Check> checks, weir::store::Done done) override {
    for (weir::limiter::Check& check : checks) {
      if (check.request.cost < 0) std::abort();
      check.status = {};
      check.decision = {};
      check.verdicts.clear();
      mood = mood * 6364136223846793005U + 1442695040888963407U;
      check.decision.remaining = static_cast<std::int64_t>(mood >> (mood % 60 + 1));
      const bool refuses = check.op == weir::store::Op::kCharge && (mood & 0x100U) != 0;
      if (refuses) check.decision.verdict = weir::Verdict::kLimited;
      if ((mood & 0xE00U) == 0) continue;
      weir::limiter::PolicyVerdict verdict;
      verdict.quota = &kQuota;
      verdict.decision = check.decision;
      check.verdicts.push_back(verdict);
    }
    done();
  }
  void Apply(std::span<weir::store::Application>, weir::store::Done done) override { done(); }

  std::uint64_t mood = 0;
};

class Peer final : public weir::grpc::QuotaPeer {
 public:
  bool Send(const QuotaStreams::Response& response) override {
    // What Envoy 1.40 does not understand must never be sent.
    for (const auto& action : response.bucket_action()) {
      if (action.has_abandon_action()) continue;
      const auto& assignment = action.quota_assignment_action();
      const auto& strategy = assignment.rate_limit_strategy();
      const bool denies = strategy.has_blanket_rule() && strategy.blanket_rule() == 1;
      const bool fills = strategy.token_bucket().max_tokens() > 0 &&
                         strategy.token_bucket().tokens_per_fill().value() > 0 &&
                         strategy.token_bucket().fill_interval().seconds() == 1;
      if (assignment.assignment_time_to_live().seconds() < 2 || !(denies || fills)) std::abort();
    }
    return true;
  }
  bool sending() const override { return false; }
  void End(const weir::Error&) override {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Moody limiter;
  weir::limiter::Assignments assignments;
  weir::ManualClock clock{1'000'000'000};
  const weir::grpc::QuotaBounds bounds{
      .max_streams = 4, .max_buckets_per_stream = 8, .max_buckets = 16};
  QuotaStreams streams(limiter, assignments, clock, bounds);
  std::vector<QuotaStreams::StreamId> open;
  QuotaStreams::Reports reports;
  while (size >= 2) {
    const std::uint8_t kind = data[0];
    const std::size_t length = std::min<std::size_t>(data[1], size - 2);
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, length);
    data += 2 + length;
    size -= 2 + length;
    limiter.mood ^= kind;
    if (kind % 4 == 0) {
      const auto opened = streams.Open(std::make_unique<Peer>());
      if (opened.ok()) open.push_back(*opened);
    } else if (kind % 4 == 1) {
      clock.Advance(std::chrono::milliseconds(kind) * 20);
      streams.Tick();
    } else if (open.empty()) {
      continue;
    } else if (kind % 4 == 2 && reports.ParseFromArray(bytes.data(), static_cast<int>(length))) {
      (void)streams.OnReports(open[kind / 4 % open.size()], reports);
    } else if (kind % 16 == 3) {
      streams.Close(open.back(), kind > 127);
      open.pop_back();
    }
    if (streams.buckets() > bounds.max_buckets) std::abort();
  }
  for (const auto id : open) streams.Close(id, true);
  if (streams.buckets() != 0 || streams.streams() != 0) std::abort();
  return 0;
}
