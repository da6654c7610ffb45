#include "engine/table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <new>
#include <utility>

#include "algorithm/state.h"
#include "algorithm/token_bucket.h"
#include "engine/slot_state.h"

namespace weir::engine {

namespace {

constexpr std::size_t kMaxShards = 1024;
constexpr std::size_t kKeysPerShard = 64;  // in small engines; large ones have more
// Keys of a batch whose memory is prefetched together. Prefetching many more than the processor can
// at a time would make it wait when it could work.
constexpr std::size_t kFetched = 16;

std::uint32_t ShardsFor(std::size_t max_keys) {
  return static_cast<std::uint32_t>(
      std::bit_floor(std::clamp<std::size_t>(max_keys / kKeysPerShard, 1, kMaxShards)));
}

// Enough that a shard holds its share of max_keys at a load of 68 %, where few keys live outside
// their home bucket, plus six standard deviations of its share: hashing spreads keys unevenly, and
// that must not cost a key its place.
std::uint32_t BucketsFor(std::size_t max_keys, std::uint32_t shards) {
  const double share = std::ceil(static_cast<double>(max_keys) / shards);
  const double slots = std::max(share / 0.68, share + 6 * std::sqrt(share));
  return static_cast<std::uint32_t>(std::ceil(slots / Bucket::kSlots));
}

}  // namespace

Table::Table(const Quota& default_quota, EngineOptions options)
    : default_quota_(default_quota),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? options_.clock : &SystemClock::Get()),
      text_(options_.keys == KeyStorage::kText),
      hash_(KeyHash::Draw()),
      shard_count_(ShardsFor(options_.max_keys)),
      shard_buckets_(BucketsFor(std::max<std::size_t>(options_.max_keys, 1), shard_count_)) {
  memory_ = Pages(sizeof(Bucket) * shard_buckets_ * shard_count_);
  shards_ = std::make_unique<Shard[]>(shard_count_);
  auto* all = static_cast<Bucket*>(memory_.data());
  const std::size_t shard_slots = std::size_t{shard_buckets_} * Bucket::kSlots;
  KeyText** texts = nullptr;
  if (text_) {
    texts_ = Pages(sizeof(void*) * shard_slots * shard_count_);  // a pointer for each slot
    texts = static_cast<KeyText**>(texts_.data());
  }
  for (std::uint32_t i = 0; i < shard_count_; ++i) {
    shards_[i].Adopt(all + std::size_t{i} * shard_buckets_, shard_buckets_,
                     text_ ? texts + i * shard_slots : nullptr);
  }
  if (options_.track_changes) TrackChanges();
}

std::uint64_t Table::ShardIndex(const Fingerprint& f) const noexcept {
  return (f.Spread() & 0xFFFFFFFF) * shard_count_ >> 32;
}

// Reads no memory of the shard, so that everything can be prefetched at the same time.
[[gnu::always_inline]] inline Table::Located Table::LocateHere(
    std::string_view key) const noexcept {
  const Hash128 hash = hash_(key);
  const Fingerprint f{hash.high, static_cast<std::uint32_t>(hash.low >> 32)};
  const std::uint64_t shard = ShardIndex(f);
  auto* buckets = static_cast<Bucket*>(memory_.data());
  return {f, &shards_[shard],
          buckets + shard * shard_buckets_ + Shard::HomeIndex(f, shard_buckets_)};
}

Table::Located Table::Locate(std::string_view key) const noexcept { return LocateHere(key); }

void Table::Prefetch(const Located& at) noexcept {
  const auto* bucket = reinterpret_cast<const char*>(at.home);
  __builtin_prefetch(bucket, 1);
  __builtin_prefetch(bucket + 64, 1);
  __builtin_prefetch(at.shard, 1);
}

[[gnu::always_inline]] inline const Quota& Table::QuotaOf(const Located& at,
                                                          const Quota* given) const noexcept {
  if (given != nullptr) return *given;
  return at.shard->quotas == nullptr ? default_quota_ : OwnQuotaOf(at);
}

const Quota& Table::OwnQuotaOf(const Located& at) const noexcept {
  if (at.shard->quotas == nullptr) return default_quota_;
  const auto own = at.shard->quotas->find(at.fingerprint);
  return own == at.shard->quotas->end() ? default_quota_ : own->second.quota;
}

Decision Table::Acquire(std::string_view key, const Quota* quota, std::int64_t cost) {
  const Located at = LocateHere(key);
  Prefetch(at);
  const Nanos now = clock_->Now();
  const ShardHold hold(*at.shard);
  return ChargeHere(at, key, QuotaOf(at, quota), cost, {now, {}});
}

// While a stretch of keys is charged, the memory of the next one is being prefetched.
void Table::AcquireBatch(std::span<const Ask> asks, std::span<Decision> decisions) {
  const Call call{clock_->Now(), {}};
  std::array<Located, 2 * kFetched> ring;
  const auto stretch = [&](std::size_t begin) {
    return asks.subspan(begin, std::min(kFetched, asks.size() - begin));
  };
  const auto located = [&](std::size_t begin) { return &ring[begin % ring.size()]; };
  LocateStretch(stretch(0), located(0));
  for (std::size_t begin = 0; begin < asks.size(); begin += kFetched) {
    const std::size_t next = begin + kFetched;
    if (next < asks.size()) LocateStretch(stretch(next), located(next));
    ChargeStretch(stretch(begin), located(begin), &decisions[begin], call);
  }
}

void Table::LocateStretch(std::span<const Ask> asks, Located* at) const noexcept {
  for (const Ask& ask : asks) {
    *at = LocateHere(ask.key);
    Prefetch(*at++);
  }
}

// A run of keys in one shard (often one hot key) takes its lock once.
void Table::ChargeStretch(std::span<const Ask> asks, const Located* at, Decision* decisions,
                          const Call& call) {
  for (std::size_t i = 0; i < asks.size();) {
    Shard* const shard = at[i].shard;
    const ShardHold hold(*shard);
    for (; i < asks.size() && at[i].shard == shard; ++i) {
      const Ask& ask = asks[i];
      // Built in place: an assignment would first build it elsewhere.
      new (&decisions[i])
          Decision(ChargeHere(at[i], ask.key, QuotaOf(at[i], ask.quota), ask.cost, call));
    }
  }
}

Decision Table::Charge(const Located& at, std::string_view key, const Quota& quota,
                       std::int64_t cost, const Call& call) {
  return ChargeHere(at, key, quota, cost, call);
}

// Each function below returns one thing in one way, so that the decision is built in its final
// place: copying it would cost as much as the step.
[[gnu::always_inline]] inline Decision Table::ChargeHere(const Located& at, std::string_view key,
                                                         const Quota& quota, std::int64_t cost,
                                                         const Call& call) {
  if (quota.algorithm() != Algorithm::kTokenBucket) [[unlikely]] {
    return ChargeBoxed(at, key, quota, cost, call);
  }
  const Fingerprint f = at.fingerprint.Under(Algorithm::kTokenBucket);
  Shard::Place place = at.shard->FindInlineFrom(at.home, f);
  if (!place) [[unlikely]] {
    place = at.shard->FindElsewhere(at.home, f);
    if (place && place.boxed()) return ChargeBoxed(at, key, quota, cost, call);
  }
  return ChargeInline(at, place, key, quota, cost, call);
}

[[gnu::always_inline]] inline Decision Table::ChargeInline(const Located& at, Shard::Place place,
                                                           std::string_view key, const Quota& quota,
                                                           std::int64_t cost, const Call& call) {
  Shard& shard = *at.shard;
  algorithm::TokenBucketState state;
  if (place) [[likely]]
    state = InlineState(place.slot());
  Decision decision = algorithm::Acquire(quota, state, shard.Later(call.now), cost);
  if (cost > 0) [[likely]] {
    if (decision.allowed()) [[likely]] {
      ++shard.counts.allowed;
      if (!place) [[unlikely]] {
        place = CreateInline(shard, at.fingerprint.Under(Algorithm::kTokenBucket), key, call);
      }
      if (place) [[likely]]
        SetInlineState(shard, place, state);
    } else {
      ++shard.counts.limited;
    }
  } else if (cost < 0) {
    decision.verdict = Verdict::kInvalid;
  }
  return decision;
}

Decision Table::ChargeBoxed(const Located& at, std::string_view key, const Quota& quota,
                            std::int64_t cost, const Call& call) {
  Decision decision = StepBoxed(at, key, quota, cost, call);
  if (cost < 0) decision.verdict = Verdict::kInvalid;
  if (cost > 0) ++(decision.allowed() ? at.shard->counts.allowed : at.shard->counts.limited);
  return decision;
}

Decision Table::StepBoxed(const Located& at, std::string_view key, const Quota& quota,
                          std::int64_t cost, const Call& call) {
  const Nanos now = at.shard->Later(call.now);
  Shard::Place place = Find(at, quota.algorithm());
  if (!place) {
    const algorithm::State fresh;
    if (cost <= 0 || cost > quota.limit()) return algorithm::Peek(quota, fresh, now, cost);
    Box* box =
        Box::Make(quota.algorithm(), TextOf(key), algorithm::CapacityForAcquire(quota, fresh));
    place = Create(*at.shard, at.fingerprint.Under(quota.algorithm()), box, call);
    if (!place) return algorithm::Peek(quota, fresh, now, cost);
  }
  GrowFor(place, algorithm::CapacityForAcquire(quota, place.box()->state()));
  algorithm::State state = place.box()->state();
  const Decision decision = algorithm::Acquire(quota, state, now, cost);
  if (cost > 0 && decision.allowed()) Settle(*at.shard, place, state);
  return decision;
}

Shard::Place Table::Find(const Located& at, Algorithm algorithm) const noexcept {
  return at.shard->FindFrom(at.home, at.fingerprint.Under(algorithm));
}

// Creates a new key's slot, and takes `box` (null: an inline state). Empty if there is no room,
// which happens only if concurrent calls together hold more keys than the engine may: such a key is
// decided but not remembered, and counted as evicted.
Shard::Place Table::Create(Shard& shard, const Fingerprint& f, Box* box, const Call& call) {
  if (!MakeRoom(shard, call)) {
    ++shard.counts.evicted;
    ++shard.counts.evicted_active;
    Box::Free(box);
    return {};
  }
  const Shard::Place place = shard.Insert(f, box != nullptr);
  if (box != nullptr) place.set_box(box);
  ++shard.counts.created;
  return place;
}

Shard::Place Table::CreateInline(Shard& shard, const Fingerprint& f, std::string_view key,
                                 const Call& call) {
  const Shard::Place place = Create(shard, f, nullptr, call);
  if (place) shard.SetText(place, TextOf(key));
  return place;
}

Table::Held::Held(const Table& table, std::string_view key, const Quota* given)
    : at(table.Locate(key)),
      now(table.clock_->Now()),
      hold(at.shard->lock),
      quota(table.QuotaOf(at, given)),
      place(table.Find(at, quota.algorithm())) {
  now = at.shard->Later(now);
}

Decision Table::Peek(std::string_view key, const Quota* given, std::int64_t cost) {
  const Held held(*this, key, given);
  const auto& [at, now, hold, quota, place] = held;
  Decision decision;
  if (!place) {
    decision = algorithm::Peek(quota, algorithm::State{}, now, cost);
  } else if (!place.boxed()) {
    decision = algorithm::Peek(quota, InlineState(place.slot()), now, cost);
  } else {
    decision = algorithm::Peek(quota, place.box()->state(), now, cost);
  }
  if (cost < 0) decision.verdict = Verdict::kInvalid;
  return decision;
}

Decision Table::Refund(std::string_view key, const Quota* given, std::int64_t cost) {
  if (cost < 0) return Peek(key, given, cost);
  const Held held(*this, key, given);
  const auto& [at, now, hold, quota, place] = held;
  if (!place) return algorithm::Peek(quota, algorithm::State{}, now, 0);
  if (!place.boxed()) {
    algorithm::TokenBucketState state = InlineState(place.slot());
    const Decision decision = algorithm::Refund(quota, state, now, cost);
    SetInlineState(*at.shard, place, state);
    return decision;
  }
  algorithm::State state = place.box()->state();
  const Decision decision = algorithm::Refund(quota, state, now, cost);
  Settle(*at.shard, place, state);
  return decision;
}

bool Table::Release(std::string_view key, const Quota* given, std::int64_t lease) {
  const Held held(*this, key, given);
  const auto& [at, now, hold, quota, place] = held;
  if (!place || !place.boxed()) return false;
  algorithm::State state = place.box()->state();
  const bool released = algorithm::Release(quota, state, now, lease);
  if (released) Settle(*at.shard, place, state);
  return released;
}

}  // namespace weir::engine
