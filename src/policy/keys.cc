#include "policy/keys.h"

#include <algorithm>
#include <chrono>

#include "base/hex.h"
#include "base/int128.h"

namespace weir::policy {
namespace {

// Begins a part before which the key has no value. Parts cannot begin with it otherwise: it would
// be escaped.
constexpr char kSkipsValue = '\0';

bool IsPlain(char c, char special) noexcept {
  return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f && c != '|' && c != '%' && c != special;
}

void AppendEscapedBeside(std::string& out, std::string_view text, char special) {
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && IsPlain(text[plain], special)) ++plain;
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return;
    AppendPercent(out, text.front());
    text.remove_prefix(1);
  }
}

// No value and no entry name contains it: a '%' in them is followed by two digits.
constexpr std::string_view kLongMark = "|%long:";

/// FNV-1a: the same on all nodes. A client that finds two texts with the same hash only shares a
/// bucket with itself.
UInt128 HashOf(std::string_view text) noexcept {
  constexpr UInt128 kPrime = (UInt128{1} << 88U) + 0x13B;
  UInt128 hash = (UInt128{0x6C62272E07BB0142} << 64U) + 0x62B821756295C58D;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  return hash;
}

/// Cuts the key that begins at `begin`, if it is too long.
void Fit(std::string& out, std::size_t begin) {
  if (out.size() - begin <= kMaxKeyBytes) [[likely]]
    return;
  constexpr std::size_t kHashBytes = sizeof(UInt128);
  const UInt128 hash = HashOf(std::string_view(out).substr(begin));
  out.resize(begin + kMaxKeyBytes - kLongMark.size() - 2 * kHashBytes);
  // Do not cut within an escape.
  const std::size_t percent = out.rfind('%');
  if (percent != std::string::npos && percent >= begin && out.size() - percent < 3) {
    out.resize(percent);
  }
  out += kLongMark;
  for (std::size_t i = kHashBytes; i-- > 0;) {
    AppendHex(out, static_cast<unsigned char>(hash >> (8 * i)));
  }
}

}  // namespace

void AppendEscaped(std::string& out, std::string_view text) { AppendEscapedBeside(out, text, '|'); }

void AppendEntryName(std::string& out, std::string_view name) {
  AppendEscapedBeside(out, name, ':');
}

std::vector<std::string> KeyParts(const Definition& definition) {
  std::vector<EntryMatch> sorted = definition.match;
  if (!definition.ordered) {
    std::sort(sorted.begin(), sorted.end(),
              [](const EntryMatch& a, const EntryMatch& b) { return a.name < b.name; });
  }
  std::vector<std::string> parts(1);
  AppendEscapedBeside(parts.back(), definition.domain, '/');
  parts.back() += '/';
  AppendEscaped(parts.back(), definition.name);
  for (const EntryMatch& entry : sorted) {
    parts.back() += '|';
    AppendEscapedBeside(parts.back(), entry.name, ':');
    parts.back() += ':';
    // In a chain, every value that a prefix matches has its own bucket as well.
    if (entry.kind == MatchKind::kAny || (definition.ordered && entry.kind == MatchKind::kPrefix)) {
      if (entry.shared) AppendEscaped(parts.back(), PlainMatchText(entry));
      parts.emplace_back(entry.shared ? 1 : 0, kSkipsValue);
    } else {
      AppendEscaped(parts.back(), PlainMatchText(entry));
    }
  }
  return parts;
}

void AppendKey(std::string& out, std::span<const std::string> parts,
               std::span<const std::string_view> values) {
  const std::size_t begin = out.size();
  out += parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    std::string_view part = parts[i];
    if (part.starts_with(kSkipsValue)) {
      part.remove_prefix(1);
    } else {
      AppendEscaped(out, values[i - 1]);
    }
    out += part;
  }
  Fit(out, begin);
}

void AppendBareKey(std::string& out, std::string_view key) {
  const std::size_t begin = out.size();
  out += "key|";
  AppendEscaped(out, key);
  Fit(out, begin);
}

void AppendOverrideKey(std::string& out, std::string_view domain, Descriptor descriptor,
                       const Quota& quota) {
  const std::size_t begin = out.size();
  AppendEscapedBeside(out, domain.empty() ? kDefaultDomain : domain, '/');
  // An hourly and a daily limit are two limits, whatever their numbers.
  out += "/%override" + std::to_string(quota.window() / std::chrono::seconds(1));
  // Overrides are rare and descriptors short: pick the next name each time instead of sorting a
  // copy.
  const Entry* last = nullptr;
  for (std::size_t done = 0; done < descriptor.size(); ++done) {
    const Entry* next = nullptr;
    const auto before = [](const Entry* a, const Entry* b) {
      return a->key != b->key ? a->key < b->key : a < b;
    };
    for (const Entry& entry : descriptor) {
      const bool after_last = last == nullptr || before(last, &entry);
      if (after_last && (next == nullptr || before(&entry, next))) next = &entry;
    }
    out += '|';
    AppendEscapedBeside(out, next->key, ':');
    out += ':';
    AppendEscaped(out, next->value);
    last = next;
  }
  Fit(out, begin);
}

}  // namespace weir::policy
