#include "store/lease/leases.h"

#include <algorithm>
#include <string_view>

namespace weir::store::lease {

std::shared_ptr<LeaseMetrics> Leases::AddMetrics() {
  const std::lock_guard lock(mutex_);
  return metrics_.emplace_back(std::make_shared<LeaseMetrics>());
}

std::vector<std::shared_ptr<LeaseMetrics>> Leases::metrics() const {
  const std::lock_guard lock(mutex_);
  return metrics_;
}

Leases::Totals Leases::Sum() const {
  Totals totals;
  for (const auto& one : metrics()) {
    totals.keys += one->keys.load(std::memory_order_relaxed);
    totals.held += one->held.load(std::memory_order_relaxed);
    totals.local += one->local.value();
    totals.asks += one->asks.value() + one->share_asks.value();
    totals.granted += one->granted.value();
    totals.lost += one->lost.value();
  }
  return totals;
}

void Leases::Collect(telemetry::TextWriter& out) const {
  const std::vector<std::shared_ptr<LeaseMetrics>> all = metrics();
  const auto counter = [&](std::string_view name, std::string_view help,
                           telemetry::LocalCounter LeaseMetrics::*part) {
    std::uint64_t sum = 0;
    for (const auto& one : all) sum += ((*one).*part).value();
    out.Counter(name, help);
    out.Sample(sum);
  };
  std::uint64_t keys = 0;
  std::int64_t held = 0;
  for (const auto& one : all) {
    keys += one->keys.load(std::memory_order_relaxed);
    held += one->held.load(std::memory_order_relaxed);
  }
  std::uint64_t sharing = 0;
  for (const auto& one : all) sharing += one->sharing.load(std::memory_order_relaxed);
  out.Gauge("weir_lease_share_keys", "Keys with a reserved share of their rate.");
  out.Sample(sharing);
  out.Gauge("weir_lease_keys", "Keys with leased permits.");
  out.Sample(keys);
  out.Gauge("weir_lease_permits_held", "Leased permits not spent yet.");
  out.Sample(static_cast<std::uint64_t>(std::max<std::int64_t>(held, 0)));
  counter("weir_lease_local_checks_total", "Checks decided without a call to the store.",
          &LeaseMetrics::local);
  counter("weir_lease_local_refused_total", "Checks refused without a call to the store.",
          &LeaseMetrics::refused);
  counter("weir_lease_calls_total", "Calls to the store that leased permits.", &LeaseMetrics::asks);
  counter("weir_lease_permits_granted_total", "Permits leased.", &LeaseMetrics::granted);
  counter("weir_lease_permits_spent_total", "Leased permits that were spent.",
          &LeaseMetrics::spent);
  counter("weir_lease_permits_returned_total", "Leased permits that were returned.",
          &LeaseMetrics::returned);
  counter("weir_lease_permits_lost_total",
          "Leased permits that expired unspent: requests that leasing refused needlessly.",
          &LeaseMetrics::lost);
  counter("weir_lease_permits_lent_total", "Permits of these that nodes of this region took.",
          &LeaseMetrics::lent);
  counter("weir_lease_share_calls_total", "Calls to the store that reserved a share of a rate.",
          &LeaseMetrics::share_asks);
  counter("weir_lease_share_permits_total", "Permits spent from reserved shares.",
          &LeaseMetrics::share_spent);
}

}  // namespace weir::store::lease
