// Bytes of an HTTP/2 peer into a gRPC session with all services. The first byte chooses how the
// input is cut; with the highest bit set, the client preface is put in front so that frames are
// reached.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "limiter/limiter.h"
#include "protocol/grpc/decider.h"
#include "protocol/grpc/health.h"
#include "protocol/grpc/method.h"
#include "protocol/grpc/quota_streams.h"
#include "protocol/grpc/reflection.h"
#include "protocol/grpc/rlqs.h"
#include "protocol/grpc/rls.h"
#include "protocol/grpc/session.h"
#include "protocol/grpc/weir_service.h"

namespace {

using weir::grpc::Session;

class AlwaysAllowed final : public weir::limiter::Limiter {
 public:
  void Decide(std::span<weir::limiter::Check> checks, weir::store::Done done) override {
    for (weir::limiter::Check& check : checks) {
      // Touch everything that the session passed on.
      std::size_t sum = check.request.domain.size();
      for (std::size_t i = 0; i < check.request.descriptors.size(); ++i) {
        for (const weir::policy::Entry& entry : check.request.descriptors[i]) {
          for (const char c : entry.key) sum += static_cast<unsigned char>(c);
          for (const char c : entry.value) sum += static_cast<unsigned char>(c);
        }
        weir::limiter::PolicyVerdict verdict;
        verdict.policy = "fuzz";
        verdict.descriptor = i;
        check.verdicts.push_back(verdict);
      }
      check.decision = {};
      check.decision.remaining = static_cast<std::int64_t>(sum);
    }
    done();
  }
  void Apply(std::span<weir::store::Application>, weir::store::Done done) override { done(); }
};

class Deaf final : public weir::grpc::SessionObserver {
 public:
  void OnOutput() override {}
};

struct Door {
  Door() {
    services.Add(std::string(weir::grpc::kShouldRateLimitPath),
                 weir::grpc::MakeShouldRateLimit(decider, {}));
    weir::grpc::AddWeirService(services, decider);
    health.AddTo(services);
    weir::grpc::AddReflection(services, {"weir.v1.Limiter"});
    services.Add(std::string(weir::grpc::kStreamRateLimitQuotasPath),
                 weir::grpc::MakeStreamRateLimitQuotas(quotas));
    services.OnBurstEnd([this] { decider.Flush(); });
  }

  AlwaysAllowed limiter;
  weir::grpc::Decider decider{limiter};
  weir::grpc::Health health{{"weir.v1.Limiter"}};
  weir::limiter::Assignments assignments;
  weir::ManualClock clock{1};
  weir::grpc::QuotaStreams quotas{limiter, assignments, clock};
  weir::grpc::Services services;
  Deaf deaf;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Door door;
  // Charges for what the last input left over.
  for (bool more = door.quotas.Tick(); more;) more = door.quotas.Turn();
  if (size < 2) return 0;
  const std::size_t piece = (data[0] & 0x7FU) == 0 ? size : data[0] & 0x7FU;
  weir::grpc::SessionOptions options;
  options.max_message_bytes = 10'000;
  options.max_buffered_bytes = 50'000;
  Session session(door.services, options, door.clock, door.deaf);
  std::string out;
  if ((data[0] & 0x80U) != 0) session.Receive("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  while (!rest.empty()) {
    bool open = session.Receive(rest.substr(0, piece));
    while (open && session.paused()) open = session.Receive({});
    rest.remove_prefix(std::min(piece, rest.size()));
    out.clear();
    if (!session.Fill(out, 1 << 16) || !open) return 0;
    door.clock.Advance(std::chrono::milliseconds(1));
    session.Expire(door.clock.Now());
  }
  session.Drain();
  session.EndCalls("end of input");
  session.Fill(out, 1 << 16);
  return 0;
}
