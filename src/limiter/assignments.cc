#include "limiter/assignments.h"

#include <algorithm>
#include <array>

#include "telemetry/metrics.h"

namespace weir::limiter {
namespace {

bool SameEntries(const Assigned& assigned, policy::Descriptor descriptor) {
  if (assigned.entries.size() != descriptor.size()) return false;
  return std::ranges::all_of(descriptor, [&assigned](const policy::Entry& entry) {
    return std::ranges::any_of(assigned.entries, [&entry](const auto& own) {
      return own.first == entry.key && own.second == entry.value;
    });
  });
}

}  // namespace

std::shared_ptr<Assigned> Assignments::Add(
    std::string_view domain, std::vector<std::pair<std::string, std::string>> entries) {
  auto added = std::make_shared<Assigned>();
  added->domain = domain;
  added->entries = std::move(entries);
  const std::lock_guard lock(mutex_);
  if (all_.size() >= sweep_at_) Sweep();
  all_.push_back(added);
  return added;
}

void Assignments::Sweep() {
  std::erase_if(all_, [](const auto& assigned) { return assigned.expired(); });
  sweep_at_ = std::max<std::size_t>(1024, all_.size() * 2);
}

template <typename Wanted>
std::vector<std::shared_ptr<const Assigned>> Assignments::FindIf(std::size_t most,
                                                                 Wanted wanted) const {
  std::vector<std::shared_ptr<const Assigned>> found;
  const std::lock_guard lock(mutex_);
  for (const auto& weak : all_) {
    if (found.size() == most) break;
    std::shared_ptr<const Assigned> assigned = weak.lock();
    if (assigned != nullptr && wanted(*assigned)) found.push_back(std::move(assigned));
  }
  return found;
}

std::vector<std::shared_ptr<const Assigned>> Assignments::Find(std::string_view domain,
                                                               policy::Descriptor descriptor,
                                                               std::size_t most) const {
  return FindIf(most, [&](const Assigned& assigned) {
    return assigned.domain == domain && SameEntries(assigned, descriptor);
  });
}

std::vector<std::shared_ptr<const Assigned>> Assignments::FindKey(std::string_view key,
                                                                  std::size_t most) const {
  return FindIf(most, [key](const Assigned& assigned) {
    return std::ranges::find(assigned.keys, key) != assigned.keys.end();
  });
}

void Assignments::SetKeys(Assigned& assigned, std::vector<std::string> keys) {
  const std::lock_guard lock(mutex_);
  assigned.keys = std::move(keys);
}

void Assignments::Collect(telemetry::TextWriter& out) const {
  std::uint64_t buckets = 0;
  std::uint64_t per_second = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& weak : all_) {
      const auto assigned = weak.lock();
      if (assigned == nullptr) continue;
      ++buckets;
      const std::int64_t rate = assigned->per_second.load(std::memory_order_relaxed);
      if (rate < kUnlimitedPerSecond) per_second += static_cast<std::uint64_t>(rate);
    }
  }
  out.Gauge("weir_rlqs_streams", "Envoys connected for assignments.");
  out.Sample(static_cast<std::uint64_t>(std::max<std::int64_t>(totals_.streams, 0)));
  out.Gauge("weir_rlqs_buckets", "Assigned buckets, counted once per Envoy.");
  out.Sample(buckets);
  out.Gauge("weir_rlqs_assigned_per_second",
            "Requests per second that Envoys may admit, except buckets that no policy limits.");
  out.Sample(per_second);
  out.Counter("weir_rlqs_pushes_total", "Actions sent to Envoys, by kind.");
  const auto pushes = [&out](std::string_view action, std::uint64_t count) {
    const std::array labels = {telemetry::Label{"action", action}};
    out.Sample(count, labels);
  };
  pushes("token_bucket", totals_.pushed);
  pushes("deny_all", totals_.denied);
  pushes("abandon", totals_.abandoned);
  out.Counter("weir_rlqs_charged_total", "Requests charged for assignments.");
  out.Sample(totals_.charged.load());
  out.Counter("weir_rlqs_tail_charged_total",
              "Requests charged for what Envoys may still admit after their stream ended.");
  out.Sample(totals_.tails.load());
  out.Counter("weir_rlqs_turned_away_total",
              "Streams and buckets refused because there were too many.");
  out.Sample(totals_.turned_away.load());
}

}  // namespace weir::limiter
