#pragma once

// One key as stored in snapshots and changes (docs/design/snapshot-format.md), and the bytes around
// it.

#include <bit>
#include <cstdint>
#include <istream>
#include <string>
#include <type_traits>
#include <vector>

#include "base/checksum.h"
#include "engine/shard.h"
#include "weir/result.h"

namespace weir::engine {

static_assert(std::endian::native == std::endian::little, "snapshots are little-endian");

inline constexpr std::uint8_t kEndRecord = 0;
inline constexpr std::uint8_t kKeyRecord = 1;
inline constexpr std::uint8_t kForgottenRecord = 2;  // in changes only

Error Damaged(const char* what);

template <typename T>
void Put(std::string& out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Reads fixed-size values and byte strings, and updates a checksum of them.
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

/// A key as stored in a snapshot.
struct SavedKey {
  Algorithm algorithm = Algorithm::kTokenBucket;
  Fingerprint fingerprint;
  std::vector<std::uint8_t> state;
  std::string text;
};

/// Appends the record of the key at `place`.
void PutKey(std::string& out, const Shard& shard, const Shard::Place& place);
/// Reads such a record, after its first byte. Everything is checked.
Status GetKey(Reader& in, SavedKey& key);

}  // namespace weir::engine
