#include "base/key_hash.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <span>
#include <type_traits>

namespace weir {

// One call for everything: drawing word by word would take as long as many thousand checks.
KeyHash::Secret KeyHash::Draw() {
  static_assert(std::is_trivially_copyable_v<Secret>);
  Secret secret;
  std::span<std::byte> left = std::as_writable_bytes(std::span(&secret, 1));
  while (!left.empty()) {
    const ssize_t drawn = getrandom(left.data(), left.size(), 0);
    if (drawn < 0 && errno != EINTR) std::abort();  // no entropy: nothing would be keyed
    if (drawn > 0) left = left.subspan(static_cast<std::size_t>(drawn));
  }
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
