#include "base/key_hash.h"

#include <random>

namespace weir {

KeyHash::Secret KeyHash::Draw() {
  std::random_device source;
  Secret secret;
  auto word = [&source] { return std::uint64_t{source()} << 32 | source(); };
  for (Multiplier& m : secret.piece) m = {word(), word()};
  for (Multiplier& m : secret.digest) m = {word(), word()};
  return secret;
}

// Runs of up to kDigests piece digests are summed; a key longer than one run (16 KiB) carries the
// result of the last run into the next. The proof covers one run; beyond it the bound is heuristic.
Hash128 KeyHash::HashLong(std::string_view key) const noexcept {
  Hash128 carried{0, key.size()};
  while (!key.empty()) {
    Sum sum(secret_.digest.data());
    sum.Add(carried.high);
    sum.Add(carried.low);
    for (std::size_t i = 0; i < kDigests && !key.empty(); ++i) {
      const std::string_view piece = key.substr(0, kPieceBytes);
      key.remove_prefix(piece.size());
      const Hash128 digest = HashPiece(piece);
      sum.Add(digest.high);
      sum.Add(digest.low);
    }
    carried = sum.Finish();
  }
  return carried;
}

}  // namespace weir
