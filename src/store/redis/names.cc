#include "store/redis/names.h"

#include <array>
#include <cstdint>
#include <utility>

#include "algorithm/algorithms.h"
#include "base/hex.h"
#include "drivers/redis/slot.h"
#include "store/store.h"

namespace weir::store::redis {
namespace {

// The value of `entry` in "…|entry:value|…", or nothing.
std::string_view ValueOf(std::string_view key, std::string_view entry) {
  for (std::size_t at = key.find('|'); at != std::string_view::npos; at = key.find('|', at + 1)) {
    const std::string_view rest = key.substr(at + 1);
    if (rest.substr(0, entry.size()) == entry && rest.substr(entry.size(), 1) == ":") {
      const std::string_view value = rest.substr(entry.size() + 1);
      return value.substr(0, value.find('|'));
    }
  }
  return {};
}

// Braces would end a tag early, and an empty tag has no effect: so it is hexadecimal where needed.
std::string Plain(std::string_view text) {
  std::string out = "t";
  for (const char c : text) {
    if (c == '{' || c == '}' || c == '\\') {
      out += '\\';
      AppendHex(out, static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

// Spread keys use this many evenly spaced slots, which 2, 3, 4, 6 or 12 masters share evenly. More
// would not spread better over a few masters, and checks of different slots never share a call:
// with 64, three masters together spent twice the time on a check.
constexpr std::uint32_t kStripes = 12;

std::uint32_t StripeAt(std::uint16_t slot) { return slot * kStripes / weir::redis::kSlots; }

std::array<std::string, kStripes> MakeStripes() {
  std::array<std::string, kStripes> stripes;
  for (std::uint32_t i = 0; i < kStripes; ++i) {
    for (int n = 0; stripes[i].empty(); ++n) {
      std::string tag = "s" + std::to_string(i) + "-" + std::to_string(n);
      if (StripeAt(weir::redis::SlotOf(tag)) == i) stripes[i] = std::move(tag);
    }
  }
  return stripes;
}

const std::string& StripeOf(std::string_view text) {
  static const std::array<std::string, kStripes> stripes = MakeStripes();
  return stripes[StripeAt(weir::redis::SlotOf(Plain(text)))];
}

}  // namespace

/// As the policies determine it (docs/adr/0013-spread-by-policies.md).
std::string Names::PlacedTag(std::string_view key) const {
  const std::string_view head = key.substr(0, key.find('|'));
  const std::size_t slash = head.find('/');
  if (slash == std::string_view::npos) return StripeOf(key);
  if (head.substr(slash + 1).starts_with("%override")) return StripeOf(key);
  std::string tag(head.substr(0, slash));
  const auto found = places_->find(head);
  if (found == places_->end()) return Plain(tag);
  if (found->second.whole) return StripeOf(key);
  for (const std::string& entry : found->second.entries) {
    tag.append("|").append(ValueOf(key, entry));
  }
  return StripeOf(tag);
}

std::string Names::Tag(std::string_view key) const {
  key = key.substr(0, key.find(kRecordMark));
  if (key.substr(0, 1) == "{") {
    const std::size_t end = key.find('}');
    if (end != std::string_view::npos) return Plain(key.substr(1, end - 1));
  }
  if (key.substr(0, 3) == "cl|") return Plain(key);
  if (places_ != nullptr && key.find('|') != std::string_view::npos) return PlacedTag(key);
  const std::size_t end = key.find_first_of("/|");
  std::string domain(end == std::string_view::npos ? "" : key.substr(0, end));
  if (!tag_entry_.empty()) {
    const std::string_view value = ValueOf(key, tag_entry_);
    if (!value.empty()) domain.append("|").append(value);
  }
  return Plain(domain);
}

void Names::Append(std::string_view key, Algorithm algorithm, std::string& out) const {
  out += prefix_;
  if (tagged_) out.append("{").append(Tag(key)).append("}");
  out.append(key);
  out += algorithm::Of(algorithm).letter;
}

std::optional<HeldKey> Names::Parse(std::string_view name) const {
  if (!name.starts_with(prefix_)) return std::nullopt;
  name.remove_prefix(prefix_.size());
  if (tagged_) {
    const std::size_t end = name.starts_with('{') ? name.find('}') : std::string_view::npos;
    if (end == std::string_view::npos) return std::nullopt;
    name.remove_prefix(end + 1);
  }
  if (name.size() < 2) return std::nullopt;
  const algorithm::Descriptor* found = algorithm::FindLetter(name.back());
  if (found == nullptr) return std::nullopt;
  name.remove_suffix(1);
  return HeldKey{std::string(name), found->algorithm};
}

}  // namespace weir::store::redis
