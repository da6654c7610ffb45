#include "admin/throttled.h"

#include <memory>
#include <utility>

#include "protocol/http/response_writer.h"
#include "weir/clock.h"

namespace weir::admin {
namespace {

/// A peek at one bucket, with the memory that the store writes to.
struct ThrottleLook {
  std::string bucket;
  store::Charge charge;
  Decision decision;
  store::Application application;
};

}  // namespace

const Quota& AnyThrottle() {
  static const Quota kQuota = *Quota::TokenBucket(1, 1, kMaxWindow);
  return kQuota;
}

void AskThrottled(limiter::PolicyLimiter& limiter, std::string bucket,
                  std::function<void(std::chrono::nanoseconds full_in)> done) {
  const auto look = std::make_shared<ThrottleLook>();
  look->bucket = std::move(bucket);
  look->charge = {look->bucket, 1, &AnyThrottle()};
  look->application.op = store::Op::kPeek;
  look->application.charges = std::span(&look->charge, 1);
  look->application.decisions = std::span(&look->decision, 1);
  limiter.Apply(std::span(&look->application, 1), [look, done = std::move(done)] {
    done(look->application.status.ok() ? look->decision.reset_after : std::chrono::nanoseconds(0));
  });
}

std::string AboutThrottled(const limiter::TopKeys& top, std::string_view bucket,
                           std::chrono::nanoseconds full_in) {
  constexpr std::size_t kMost = 100;
  using Keys = limiter::TopKeys;
  std::string about = "CL.THROTTLE decides by the limit that comes with each command, in bucket " +
                      std::string(bucket) + ": ";
  about += full_in.count() == 0
               ? "it is full"
               : "it is full again in " + std::to_string(http::CeilMillis(full_in)) + " ms";
  for (const Keys::Key& key : top.Top(Keys::Kind::kLimited, kMost, SystemClock::Get().Now())) {
    if (key.key != bucket) continue;
    about += ", and was refused " + std::to_string(key.count) +
             (key.count == 1 ? " time" : " times") + " in the last minute";
  }
  return about;
}

}  // namespace weir::admin
