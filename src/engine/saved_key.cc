#include "engine/saved_key.h"

#include "algorithm/algorithms.h"
#include "algorithm/state.h"
#include "algorithm/token_bucket.h"

namespace weir::engine {
namespace {

// The most that a damaged length may make us allocate.
constexpr std::uint32_t kMaxStateBytes = 1U << 28;
constexpr std::uint32_t kMaxKeyBytes = 1U << 24;

}  // namespace

Error Damaged(const char* what) {
  return {Code::kInvalidArgument, std::string("the snapshot is damaged: ") + what};
}

void PutKey(std::string& out, const Shard& shard, const Shard::Place& place) {
  const std::string_view key = shard.TextOf(place);
  const Slot& slot = place.slot();
  std::array<std::uint8_t, algorithm::kTokenBucketBytes> bytes;
  algorithm::State state{bytes.data(), 0, bytes.size()};
  if (place.boxed()) {
    state = place.box()->state();
  } else {
    algorithm::WriteTokenBucket(state, {slot.word, slot.extra});
  }
  // The journal writes every key that changes: one append for all fields of fixed size.
  std::array<char, 64> head;
  std::size_t size = 0;
  const auto put = [&](const auto& value) {
    std::memcpy(head.data() + size, &value, sizeof value);
    size += sizeof value;
  };
  put(kKeyRecord);
  put(place.algorithm());
  put(slot.high);
  put(slot.low);
  put(state.size);
  put(static_cast<std::uint32_t>(key.size()));
  out.append(head.data(), size);
  out.append(reinterpret_cast<const char*>(state.data), state.size);
  out.append(key);
}

Status GetKey(Reader& in, SavedKey& key) {
  std::uint8_t tag = 0;
  std::uint32_t state_size = 0;
  std::uint32_t text_size = 0;
  if (!in.Get(tag) || !in.Get(key.fingerprint.high) || !in.Get(key.fingerprint.low) ||
      !in.Get(state_size) || !in.Get(text_size)) {
    return Damaged("a key is truncated");
  }
  if (state_size > kMaxStateBytes || text_size > kMaxKeyBytes) return Damaged("a size");
  if (!in.GetBytes(key.state, state_size) || !in.GetBytes(key.text, text_size)) {
    return Damaged("a key is truncated");
  }
  const algorithm::Descriptor* known = algorithm::FindTag(tag);
  if (known == nullptr) return Damaged("an algorithm");
  key.algorithm = known->algorithm;
  if (!algorithm::Valid(key.algorithm, key.state)) return Damaged("a state");
  return {};
}

}  // namespace weir::engine
