#include "notify/delivery_stats.h"

#include <algorithm>
#include <string_view>

namespace weir::notify {

void DeliveryStats::Took(Micros time) noexcept {
  const Micros positive = std::max<Micros>(time, 0);
  std::size_t bucket = 0;
  while (bucket < kBounds.size() && static_cast<double>(positive) > kBounds[bucket] * 1e6) ++bucket;
  took_[bucket].fetch_add(1, std::memory_order_relaxed);
  took_micros_.fetch_add(static_cast<std::uint64_t>(positive), std::memory_order_relaxed);
}

SenderFigures DeliveryStats::figures() const noexcept {
  const auto of = [this](Result result) { return static_cast<std::int64_t>(count(result)); };
  SenderFigures figures{.delivered = of(kDelivered),
                        .dead = of(kDead),
                        .duplicate = of(kDuplicate),
                        .delayed = of(kDelayed),
                        .dropped = of(kDropped),
                        .retries = static_cast<std::int64_t>(retries())};
  for (const auto& bucket : took_) {
    figures.timed += static_cast<std::int64_t>(bucket.load(std::memory_order_relaxed));
  }
  figures.took = static_cast<Micros>(took_micros_.load(std::memory_order_relaxed));
  return figures;
}

void DeliveryStats::Collect(telemetry::TextWriter& out, Micros now) const {
  constexpr std::array<std::string_view, kResults> kNames = {"delivered", "dead", "duplicate",
                                                             "delayed", "dropped"};
  out.Counter("weir_notify_deliveries_total", "Messages by result of their delivery.");
  for (std::size_t i = 0; i < kResults; ++i) {
    const telemetry::Label label{"result", kNames[i]};
    out.Sample(count(static_cast<Result>(i)), {&label, 1});
  }
  out.Counter("weir_notify_retries_total", "Failed attempts that were retried.");
  out.Sample(retries());
  out.Histogram("weir_notify_delivery_seconds", "Time from accepting a message to its delivery.");
  std::array<std::uint64_t, kBounds.size() + 1> counts{};
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = took_[i].load();
  out.Samples(kBounds, counts, static_cast<double>(took_micros_.load()) / 1e6);
  out.Gauge("weir_notify_oldest_seconds", "Age of the oldest message in progress.");
  const Micros oldest = oldest_.load(std::memory_order_relaxed);
  out.Sample(oldest == 0 ? 0.0 : static_cast<double>(std::max<Micros>(now - oldest, 0)) / 1e6);
}

}  // namespace weir::notify
