// Table::Save and Load. docs/design/snapshot-format.md describes the bytes.

#include <array>
#include <istream>
#include <mutex>
#include <ostream>
#include <string>

#include "algorithm/state.h"
#include "algorithm/token_bucket.h"
#include "base/checksum.h"
#include "engine/saved_key.h"
#include "engine/table.h"

namespace weir::engine {

namespace {

constexpr std::array<char, 8> kMagic = {'W', 'E', 'I', 'R', 'S', 'N', 'P', '1'};

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
  Put(chunk, kEndRecord);
  Put(chunk, count);
  flush();
  Put(chunk, checksum.value());
  flush();
  if (!out.flush()) return Error{Code::kUnavailable, "cannot write the snapshot"};
  return {};
}

Status Table::Load(std::istream& in) {
  Clear();
  Status status = LoadKeys(in);
  if (!status.ok()) Clear();
  DropChanges();  // what was loaded is already saved
  return status;
}

Status Table::LoadKeys(std::istream& stream) {
  Reader in(stream);
  std::array<char, 8> magic;
  KeyStorage keys;
  KeyHash::Secret secret;
  if (!in.Get(magic) || magic != kMagic) {
    return Error{Code::kInvalidArgument, "not a snapshot, or of an unsupported version"};
  }
  if (!in.Get(keys) || !in.Get(secret)) return Damaged("it is truncated");
  if (keys != options_.keys) {
    return Error{Code::kFailedPrecondition, "the snapshot was made with another KeyStorage"};
  }
  Adopt(KeyHash(secret));
  const Call call{clock_->Now(), {}};
  SavedKey key;  // reused, so that its memory is allocated once
  std::uint64_t count = 0;
  for (std::uint8_t kind = kEndRecord;; ++count) {
    if (!in.Get(kind)) return Damaged("it is truncated");
    if (kind == kEndRecord) break;
    if (kind != kKeyRecord) return Damaged("a key is truncated");
    if (Status read = GetKey(in, key); !read.ok()) return read;
    if (!Restore(key.algorithm, key.fingerprint, key.state, key.text, call)) {
      return Damaged("a key occurs twice");
    }
  }
  std::uint64_t expected_count = 0;
  std::uint64_t expected_sum = 0;
  if (!in.Get(expected_count)) return Damaged("it is truncated");
  const std::uint64_t sum = in.checksum();
  if (!in.Get(expected_sum)) return Damaged("it is truncated");
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
  if (algorithm != Algorithm::kTokenBucket || size > algorithm::kTokenBucketBytes) {
    Box* box = Box::Make(algorithm, TextOf(key), size);
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
