#include "proxy/upstream_health.h"

#include <utility>

#include "telemetry/log.h"

namespace weir::proxy {

using telemetry::Level;

namespace {

constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kRepeatEvery = 60 * kSecond;
/// An upstream that fails occasionally, as with a single slow page, must not fill the log.
constexpr Nanos kBetweenOutages = 10 * kSecond;

}  // namespace

void UpstreamHealth::NoteFailure(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  up_.store(false, std::memory_order_relaxed);
  const Nanos now = clock_.Now();
  const Nanos pause = warned_ ? kRepeatEvery : kBetweenOutages;
  if (warned_at_ != 0 && now - warned_at_ < pause) return;
  warned_ = true;
  warned_at_ = now;
  telemetry::Log(Level::kWarn, "requests to an upstream are failing",
                 {{"upstream", std::string_view(address_)}, {"error", reason}});
}

void UpstreamHealth::Recover() {
  const std::lock_guard lock(mutex_);
  up_.store(true, std::memory_order_relaxed);
  if (!std::exchange(warned_, false)) return;
  telemetry::Log(Level::kInfo, "the upstream answers again",
                 {{"upstream", std::string_view(address_)}});
}

}  // namespace weir::proxy
