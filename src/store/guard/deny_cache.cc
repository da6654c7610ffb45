#include "store/guard/deny_cache.h"

#include <algorithm>

#include "algorithm/algorithms.h"

namespace weir::store::guard {
namespace {

/// Applications with more charges than this are always sent to the store.
constexpr std::size_t kMostCharges = 16;

std::chrono::nanoseconds Less(std::chrono::nanoseconds span, Nanos passed) {
  return std::max(std::chrono::nanoseconds(0), span - std::chrono::nanoseconds(passed));
}

bool Certain(const Charge& charge, const Decision& decision) {
  return decision.verdict == Verdict::kLimited && decision.retry_after.count() > 0 &&
         !algorithm::Of(*charge.quota).leases;
}

/// A key that is charged twice in one application may be refused because of its first charge, which
/// was then undone: alone it might pass.
bool AnyTwice(std::span<const Charge> charges) {
  for (std::size_t i = 1; i < charges.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (charges[i].key == charges[j].key) return true;
    }
  }
  return false;
}

}  // namespace

std::uint64_t HashOf(std::string_view key) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  // FNV leaves the low bits weak for short keys; they choose the part and the set.
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93;
  return hash ^ (hash >> 32);
}

DenyCache::DenyCache(const DenyCacheOptions& options)
    : options_(options), sets_per_part_(options.max_keys / (kParts * kWays)) {
  if (options.max_keys > 0) sets_per_part_ = std::max<std::size_t>(1, sets_per_part_);
}

void DenyCache::SetOn(bool on) {
  if (sets_per_part_ == 0) return;
  on_.store(on, std::memory_order_release);
  for (Part& part : parts_) {
    const std::lock_guard lock(part.mutex);
    part.mark.fetch_add(1, std::memory_order_acq_rel);
    part.sets.clear();
    part.sets.resize(on ? sets_per_part_ : 0);
  }
}

std::array<DenyCache::Entry, DenyCache::kWays>& DenyCache::SetOf(
    Part& part, std::uint64_t hash) const noexcept {
  return part.sets[(hash / kParts) % part.sets.size()];
}

std::optional<Decision> DenyCache::Find(const Charge& charge, Nanos now) {
  const std::uint64_t hash = HashOf(charge.key);
  Part& part = PartOf(hash);
  const std::lock_guard lock(part.mutex);
  if (part.sets.empty()) return std::nullopt;
  for (const Entry& entry : SetOf(part, hash)) {
    if (entry.hash != hash || now >= entry.until || entry.cost != charge.cost ||
        entry.key != charge.key || *entry.quota != *charge.quota) {
      continue;
    }
    Decision decision = entry.decision;
    decision.retry_after = Less(decision.retry_after, now - entry.sent);
    decision.reset_after = Less(decision.reset_after, now - entry.sent);
    return decision;
  }
  return std::nullopt;
}

bool DenyCache::TryAnswer(Application& application, Nanos now) {
  if (!on() || application.op != Op::kCharge || application.charges.size() > kMostCharges) {
    return false;
  }
  bool refused = false;
  for (std::size_t i = 0; i < application.charges.size(); ++i) {
    const std::optional<Decision> known = Find(application.charges[i], now);
    if (!known) return false;
    application.decisions[i] = *known;
    refused = refused || !known->allowed();
  }
  if (!refused) return false;
  application.applied = false;
  application.status = {};
  Part& part = PartOf(HashOf(application.charges.front().key));
  const std::lock_guard lock(part.mutex);
  ++part.counts.hits;
  return true;
}

std::uint64_t DenyCache::MarkOf(std::string_view key) const noexcept {
  return PartOf(HashOf(key)).mark.load(std::memory_order_acquire);
}

void DenyCache::Keep(const Application& refused, std::span<const std::uint64_t> marks, Nanos sent) {
  if (!on() || refused.charges.size() > kMostCharges || AnyTwice(refused.charges)) return;
  Nanos until = 0;
  for (std::size_t i = 0; i < refused.charges.size(); ++i) {
    const Decision& decision = refused.decisions[i];
    if (!decision.allowed() && !Certain(refused.charges[i], decision)) return;
    if (!decision.allowed()) until = std::max(until, sent + decision.retry_after.count());
  }
  until = std::min(until, sent + std::chrono::nanoseconds(options_.longest).count());
  for (std::size_t i = 0; i < refused.charges.size(); ++i) {
    const Decision& decision = refused.decisions[i];
    const Nanos own = decision.allowed() ? until : sent + decision.retry_after.count();
    Put(refused.charges[i], decision, marks[i], sent, std::min(until, own));
  }
}

void DenyCache::Put(const Charge& charge, const Decision& decision, std::uint64_t mark, Nanos sent,
                    Nanos until) {
  const std::uint64_t hash = HashOf(charge.key);
  Part& part = PartOf(hash);
  const std::lock_guard lock(part.mutex);
  if (part.sets.empty() || part.mark.load(std::memory_order_relaxed) != mark) return;
  std::array<Entry, kWays>& set = SetOf(part, hash);
  auto place = std::find_if(set.begin(), set.end(), [&](const Entry& entry) {
    return entry.hash == hash && entry.key == charge.key;
  });
  if (place == set.end()) {
    place = std::min_element(set.begin(), set.end(),
                             [](const Entry& a, const Entry& b) { return a.until < b.until; });
  }
  // A refusal is more useful than a decision that came with one.
  if (place->key == charge.key && decision.allowed() && !place->decision.allowed() &&
      place->until > sent) {
    return;
  }
  place->hash = hash;
  place->until = until;
  place->sent = sent;
  place->cost = charge.cost;
  place->quota = *charge.quota;
  place->decision = decision;
  place->key.assign(charge.key);
  ++part.counts.kept;
}

void DenyCache::Forget(std::uint64_t hash) {
  Part& part = PartOf(hash);
  const std::lock_guard lock(part.mutex);
  part.mark.fetch_add(1, std::memory_order_acq_rel);
  ++part.counts.forgotten;
  if (part.sets.empty()) return;
  for (Entry& entry : SetOf(part, hash)) {
    if (entry.hash == hash) entry.until = 0;
  }
}

DenyCacheCounts DenyCache::counts() const {
  DenyCacheCounts sum;
  for (const Part& part : parts_) {
    const std::lock_guard lock(part.mutex);
    sum.hits += part.counts.hits;
    sum.kept += part.counts.kept;
    sum.forgotten += part.counts.forgotten;
  }
  return sum;
}

}  // namespace weir::store::guard
