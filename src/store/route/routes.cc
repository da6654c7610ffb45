#include "store/route/routes.h"

#include <algorithm>

#include "store/store.h"

namespace weir::store::route {
namespace {

/// Mixes every bit into all others.
std::uint64_t Mix(std::uint64_t value) noexcept {
  value ^= value >> 31;
  value *= 0x9e6c63d0876a9a35;
  value ^= value >> 29;
  value *= 0xb492b66fbe98f273;
  return value ^ (value >> 32);
}

/// Must never change: nodes of two versions have to agree where a key is.
std::uint64_t HashOf(std::string_view key) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return Mix(hash);
}

/// A reservation's record lies beside the bucket that its key begins with
/// (store/reserve/reservation.h).
std::string_view BucketOf(std::string_view key) noexcept {
  const std::size_t record = key.rfind(kRecordMark);
  return record == std::string_view::npos ? key : key.substr(0, record);
}

std::string_view PolicyOf(std::string_view key) noexcept { return key.substr(0, key.find('|')); }

}  // namespace

Way Routes::Of(std::string_view key) const noexcept {
  key = BucketOf(key);
  const std::size_t store = StoreFor(key);
  const std::uint64_t hash = HashOf(key);
  const std::uint8_t member = MemberOf(store, hash);
  const std::optional<Move>& move = options_.move;
  if (!move || store != move->from || !Takes(*move, key)) return {member, member};
  constexpr std::uint64_t kApart = 0x5851f42d4c957f2d;  // shards and shares use independent hashes
  const auto place = static_cast<std::uint32_t>(Mix(hash ^ kApart) % kWhole);
  if (place >= move->share) return {member, member};
  const std::uint8_t next = MemberOf(move->to, hash);
  return {place < move->done ? next : member, next};
}

std::size_t Routes::StoreFor(std::string_view key) const noexcept {
  if (!options_.keys.empty()) {
    if (const auto found = options_.keys.find(key); found != options_.keys.end()) {
      return found->second;
    }
  }
  if (options_.policies.empty()) return options_.usual;
  const auto found = options_.policies.find(PolicyOf(key));
  return found == options_.policies.end() ? options_.usual : found->second;
}

bool Routes::Takes(const Move& move, std::string_view key) const noexcept {
  return move.policies.empty() || std::find(move.policies.begin(), move.policies.end(),
                                            PolicyOf(key)) != move.policies.end();
}

// Of all shards the one with the highest draw: an added shard takes its part of the keys from all
// others and moves no other key.
std::uint8_t Routes::MemberOf(std::size_t store, std::uint64_t hash) const noexcept {
  const Shards& shards = options_.stores[store];
  std::size_t best = 0;
  std::uint64_t highest = 0;
  for (std::size_t i = 0; shards.size() > 1 && i < shards.size(); ++i) {
    const std::uint64_t draw = Mix(hash + (i + 1) * 0x9e3779b97f4a7c15);
    if (i > 0 && draw <= highest) continue;
    highest = draw;
    best = i;
  }
  return shards[best];
}

}  // namespace weir::store::route
