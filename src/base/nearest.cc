#include "base/nearest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weir {
namespace {

constexpr std::size_t kMaxWord = 64;

// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
std::size_t Distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before(to.size() + 1);
  std::vector<std::size_t> last(to.size() + 1);
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t changed = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({changed, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[to.size()];
}

// The letters of a word. How many of them another word lacks is a lower bound of the distance, and
// much cheaper: untrusted files may hold thousands of unknown words. Immutable.
class Letters {
 public:
  explicit Letters(std::string_view word) : size_(word.size()) {
    for (const char c : word) ++count_[static_cast<unsigned char>(c)];
  }
  std::size_t Apart(std::string_view other) const {
    std::array<std::uint8_t, 256> left = count_;
    std::size_t shared = 0;
    for (const char c : other) {
      std::uint8_t& here = left[static_cast<unsigned char>(c)];
      if (here == 0) continue;
      --here;
      ++shared;
    }
    return std::max(size_, other.size()) - shared;
  }

 private:
  std::array<std::uint8_t, 256> count_{};
  std::size_t size_;
};

}  // namespace

std::optional<std::string_view> Nearest(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  if (word.size() > kMaxWord) return std::nullopt;
  std::optional<std::string_view> nearest;
  // In a short word, two letters would be most of it.
  const std::size_t most = word.size() < 5 ? 1 : std::max<std::size_t>(2, word.size() / 3);
  std::size_t least = most + 1;
  const Letters letters(word);
  for (const std::string_view candidate : candidates) {
    if (candidate.size() + most < word.size() || word.size() + most < candidate.size()) continue;
    if (letters.Apart(candidate) >= least) continue;
    const std::size_t distance = Distance(word, candidate);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string NotAField(std::string_view name, std::string_view what,
                      std::span<const std::string_view> fields) {
  std::string text = "is not a field of ";
  text.append(what);
  const auto meant = Nearest(name, fields);
  if (meant) text.append("; did you mean ").append(*meant).append("? The fields are ");
  if (!meant) text += "; the fields are ";
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) text += i + 1 < fields.size() ? ", " : " and ";
    text += fields[i];
  }
  return text;
}

}  // namespace weir
