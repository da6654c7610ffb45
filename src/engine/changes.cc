// Table::SaveChanges and LoadChanges. A shard notes the places whose state has changed, each once;
// saving writes what they hold at that time. So a key costs one record however often it was
// charged, and reading the records in order gives the latest state.

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <span>
#include <sstream>
#include <string>

#include "base/checksum.h"
#include "engine/saved_key.h"
#include "engine/table.h"

namespace weir::engine {

namespace {

constexpr std::array<char, 8> kChangesMagic = {'W', 'E', 'I', 'R', 'C', 'H', 'G', '1'};
constexpr std::array<char, 8> kIdentityMagic = {'W', 'E', 'I', 'R', 'I', 'D', 'N', '1'};
constexpr std::uint32_t kBits = 64;

}  // namespace

void Table::TrackChanges() {
  changed_shards_ = std::vector<std::atomic<std::uint64_t>>((shard_count_ + kBits - 1) / kBits);
  for (std::uint32_t i = 0; i < shard_count_; ++i) {
    shards_[i].changes = std::make_unique<Shard::Changes>();
    shards_[i].changes->shards = &changed_shards_[i / kBits];
    shards_[i].changes->bit = std::uint64_t{1} << (i % kBits);
  }
}

void Table::DropChanges() {
  std::string dropped;
  SaveChanges(dropped);
}

std::size_t Table::SaveChanges(std::string& out) {
  const std::size_t begin = out.size();
  Put(out, kChangesMagic);
  Put(out, identity());
  std::size_t count = 0;
  for (std::size_t word = 0; word < changed_shards_.size(); ++word) {
    std::uint64_t bits = changed_shards_[word].exchange(0, std::memory_order_acquire);
    for (; bits != 0; bits &= bits - 1) {
      Shard& shard = shards_[word * kBits + static_cast<std::size_t>(std::countr_zero(bits))];
      const std::lock_guard hold(shard.lock);
      count += PutChanges(shard, out);
    }
  }
  if (count == 0) {
    out.resize(begin);
  } else {
    Put(out, kEndRecord);
  }
  return count;
}

// Resets come first: a key that has returned since is among the places.
std::size_t Table::PutChanges(Shard& shard, std::string& out) {
  Shard::Changes& changes = *shard.changes;
  std::size_t count = changes.forgotten.size();
  for (const Fingerprint& f : changes.forgotten) {
    Put(out, kForgottenRecord);
    Put(out, f.high);
    Put(out, f.low);
  }
  // Other threads wait for the lock, and each place is in the cache of the core that charged it.
  constexpr std::size_t kTogether = 16;
  const std::span<const Shard::Place> places = changes.places;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i % kTogether == 0) {
      shard.Prefetch(places.subspan(i, std::min(kTogether, places.size() - i)));
    }
    std::uint8_t& stamp = places[i].bucket->stamp[places[i].index];
    if ((stamp & Bucket::kChanged) == 0) continue;  // named before
    stamp &= Bucket::kEpoch;
    if (!places[i].bucket->Has(places[i].index)) continue;
    PutKey(out, shard, places[i]);
    ++count;
  }
  changes.forgotten.clear();
  changes.places.clear();
  return count;
}

Status Table::LoadChanges(std::string_view bytes) {
  std::istringstream stream{std::string(bytes)};
  Status status;
  while (status.ok() && stream.peek() != std::istringstream::traits_type::eof()) {
    status = LoadBatch(stream);
  }
  DropChanges();
  return status;
}

void Table::SaveIdentity(std::string& out) const {
  Put(out, kIdentityMagic);
  Put(out, options_.keys);
  Put(out, hash_.secret());
}

Status Table::LoadIdentity(Reader& in) {
  KeyStorage keys;
  KeyHash::Secret secret;
  if (!in.Get(keys) || !in.Get(secret)) return Damaged("it is truncated");
  if (keys != options_.keys) {
    return Error{Code::kFailedPrecondition, "the changes were saved with another KeyStorage"};
  }
  // Existing keys use their own secret, which is the same if all is well.
  if (size() == 0) Adopt(KeyHash(secret));
  return {};
}

// Distinguishes batches of two engines.
std::uint64_t Table::identity() const noexcept {
  std::string bytes;
  Put(bytes, options_.keys);
  Put(bytes, hash_.secret());
  Checksum checksum;
  checksum.Add(bytes);
  return checksum.value();
}

Status Table::LoadBatch(std::istream& stream) {
  Reader in(stream);
  std::array<char, 8> magic;
  std::uint64_t expected = 0;
  if (!in.Get(magic)) return Damaged("it is truncated");
  if (magic == kIdentityMagic) return LoadIdentity(in);
  if (magic != kChangesMagic || !in.Get(expected)) return Damaged("not a record of changes");
  if (expected != identity()) {
    return Error{Code::kFailedPrecondition, "the changes belong to another engine"};
  }
  const Call call{clock_->Now(), {}};
  SavedKey key;
  for (std::uint8_t kind = kEndRecord;;) {
    if (!in.Get(kind)) return Damaged("it is truncated");
    if (kind == kEndRecord) return {};
    if (kind == kForgottenRecord) {
      if (!in.Get(key.fingerprint.high) || !in.Get(key.fingerprint.low)) {
        return Damaged("it is truncated");
      }
      Forget(key.fingerprint);
      continue;
    }
    if (kind != kKeyRecord) return Damaged("an unknown record");
    if (Status read = GetKey(in, key); !read.ok()) return read;
    Forget(key.fingerprint);
    Restore(key.algorithm, key.fingerprint, key.state, key.text, call);
  }
}

void Table::Forget(const Fingerprint& fingerprint) {
  Shard& shard = shards_[ShardIndex(fingerprint)];
  const std::lock_guard hold(shard.lock);
  if (const Shard::Place place = shard.Find(fingerprint)) Erase(shard, place);
}

}  // namespace weir::engine
