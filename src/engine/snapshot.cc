// Table::Save and Load. docs/design/snapshot-format.md describes the bytes.

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <istream>
#include <limits>
#include <mutex>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "algorithm/algorithms.h"
#include "algorithm/state.h"
#include "algorithm/token_bucket.h"
#include "engine/table.h"

namespace weir::engine {

namespace {

static_assert(std::endian::native == std::endian::little, "snapshots are little-endian");

constexpr std::array<char, 8> kMagic = {'W', 'E', 'I', 'R', 'S', 'N', 'P', '1'};
constexpr std::uint8_t kKey = 1;
constexpr std::uint8_t kEnd = 0;
// What a damaged length may make us allocate at the most.
constexpr std::uint32_t kMaxStateBytes = 1U << 28;
constexpr std::uint32_t kMaxKeyBytes = 1U << 24;

Error Damaged(const char* what) {
  return {Code::kInvalidArgument, std::string("the snapshot is damaged: ") + what};
}

/// A running checksum (FNV-1a, 64 bits): against damage, not against forgery.
class Checksum {
 public:
  void Add(std::string_view bytes) noexcept {
    for (const char c : bytes) sum_ = (sum_ ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  std::uint64_t value() const noexcept { return sum_; }

 private:
  std::uint64_t sum_ = 0xCBF29CE484222325ULL;
};

template <typename T>
void Put(std::string& out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Reads fixed-size values and byte strings, summing what it reads.
class Reader {
 public:
  explicit Reader(std::istream& in) : in_(in) {}

  template <typename T>
  bool Get(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return Get(reinterpret_cast<char*>(&value), sizeof value);
  }
  template <typename Bytes>
  bool GetBytes(Bytes& bytes, std::uint32_t size) {
    bytes.resize(size);
    return Get(reinterpret_cast<char*>(bytes.data()), size);
  }
  std::uint64_t checksum() const noexcept { return checksum_.value(); }

 private:
  bool Get(char* at, std::size_t size) {
    if (!in_.read(at, static_cast<std::streamsize>(size))) return false;
    checksum_.Add({at, size});
    return true;
  }

  std::istream& in_;
  Checksum checksum_;
};

/// A key as a snapshot holds it.
struct SavedKey {
  Algorithm algorithm = Algorithm::kTokenBucket;
  Fingerprint fingerprint;
  std::vector<std::uint8_t> state;
  std::string text;
};

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
  Put(out, kKey);
  Put(out, place.algorithm());
  Put(out, slot.high);
  Put(out, slot.low);
  Put(out, state.size);
  Put(out, static_cast<std::uint32_t>(key.size()));
  out.append(reinterpret_cast<const char*>(state.data), state.size);
  out.append(key);
}

Status GetKey(Reader& in, SavedKey& key) {
  std::uint8_t tag = 0;
  std::uint32_t state_size = 0;
  std::uint32_t text_size = 0;
  if (!in.Get(tag) || !in.Get(key.fingerprint.high) || !in.Get(key.fingerprint.low) ||
      !in.Get(state_size) || !in.Get(text_size)) {
    return Damaged("a key is cut off");
  }
  if (state_size > kMaxStateBytes || text_size > kMaxKeyBytes) return Damaged("a size");
  if (!in.GetBytes(key.state, state_size) || !in.GetBytes(key.text, text_size)) {
    return Damaged("a key is cut off");
  }
  const algorithm::Descriptor* known = algorithm::FindTag(tag);
  if (known == nullptr) return Damaged("an algorithm");
  key.algorithm = known->algorithm;
  if (!algorithm::Valid(key.algorithm, key.state)) return Damaged("a state");
  return {};
}

}  // namespace

Status Table::Save(std::ostream& out) const {
  Checksum checksum;
  std::string chunk;
  const auto flush = [&] {
    checksum.Add(chunk);
    out.write(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    chunk.clear();
  };
  Put(chunk, kMagic);
  Put(chunk, options_.keys);
  Put(chunk, hash_.secret());
  std::uint64_t count = 0;
  for (std::uint32_t i = 0; i < shard_count_; ++i) {
    {
      const std::lock_guard hold(shards_[i].lock);
      shards_[i].ForEach([&](const Shard::Place& place) {
        PutKey(chunk, shards_[i], place);
        ++count;
      });
    }
    flush();  // outside the lock: the stream may be slow
  }
  Put(chunk, kEnd);
  Put(chunk, count);
  flush();
  Put(chunk, checksum.value());
  flush();
  if (!out.flush()) return Error{Code::kUnavailable, "the snapshot could not be written"};
  return {};
}

Status Table::Load(std::istream& in) {
  Clear();
  Status status = LoadKeys(in);
  if (!status.ok()) Clear();
  return status;
}

Status Table::LoadKeys(std::istream& stream) {
  Reader in(stream);
  std::array<char, 8> magic;
  KeyStorage keys;
  KeyHash::Secret secret;
  if (!in.Get(magic) || magic != kMagic) {
    return Error{Code::kInvalidArgument, "this is not a snapshot of this version"};
  }
  if (!in.Get(keys) || !in.Get(secret)) return Damaged("it ends early");
  if (keys != options_.keys) {
    return Error{Code::kFailedPrecondition, "the snapshot was made with another KeyStorage"};
  }
  hash_ = KeyHash(secret);
  const Call call{clock_->Now(), {}};
  SavedKey key;  // one for all, so that its memory is taken once
  std::uint64_t count = 0;
  for (std::uint8_t kind = kEnd;; ++count) {
    if (!in.Get(kind)) return Damaged("it ends early");
    if (kind == kEnd) break;
    if (kind != kKey) return Damaged("a key is cut off");
    if (Status read = GetKey(in, key); !read.ok()) return read;
    if (!Restore(key.algorithm, key.fingerprint, key.state, key.text, call)) {
      return Damaged("a key comes twice");
    }
  }
  std::uint64_t expected_count = 0;
  std::uint64_t expected_sum = 0;
  if (!in.Get(expected_count)) return Damaged("it ends early");
  const std::uint64_t sum = in.checksum();
  if (!in.Get(expected_sum)) return Damaged("it ends early");
  if (expected_count != count || expected_sum != sum) return Damaged("the checksum does not match");
  return {};
}

bool Table::Restore(Algorithm algorithm, const Fingerprint& fingerprint,
                    std::span<std::uint8_t> bytes, std::string_view key, const Call& call) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  const algorithm::State state{bytes.data(), size, size};
  Shard& shard = shards_[ShardIndex(fingerprint)];
  const std::lock_guard hold(shard.lock);
  if (shard.Find(fingerprint)) return false;
  if (algorithm != Algorithm::kTokenBucket) {
    Box* box = Box::Make(algorithm, key, size);
    box->Assign(state);
    if (const Shard::Place place = Create(shard, fingerprint, box, call)) {
      place.slot().extra = CoarseTime(algorithm::FreshAt(algorithm, state));
    }
  } else if (const Shard::Place place = CreateInline(shard, fingerprint, key, call)) {
    const auto bucket = algorithm::ReadTokenBucket(state);
    place.slot().word = bucket.full_at;
    place.slot().extra = bucket.frac;
  }
  return true;
}

}  // namespace weir::engine
