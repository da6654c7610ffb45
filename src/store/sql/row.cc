#include "store/sql/row.h"

#include <algorithm>
#include <array>
#include <span>

#include "algorithm/bytes.h"
#include "algorithm/state.h"
#include "drivers/digest/sha256.h"

namespace weir::store::sql {
namespace {

constexpr std::uint8_t kFormat = 1;
constexpr std::uint8_t kKeyTag =
    0xFF;  // after the algorithms: sections come in order of their tags
static_assert(kIdPrefix == kMaxRowId - sizeof(Digest));

Error Damaged(const char* what) {
  return {Code::kInternal, std::string("the row is damaged (") + what + "); reset the key"};
}

void AppendSection(std::string& out, std::uint8_t tag, std::string_view bytes) {
  out.push_back(static_cast<char>(tag));
  std::array<std::uint8_t, algorithm::kMaxVarint> size;
  const std::uint8_t* end = algorithm::PutVarint(size.data(), bytes.size());
  out.append(reinterpret_cast<const char*>(size.data()),
             static_cast<std::size_t>(end - size.data()));
  out.append(bytes);
}

algorithm::State View(const RowState::Bytes& bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  // Only read: the pure functions use one type for reading and writing.
  return {const_cast<std::uint8_t*>(bytes.data()), size, size};
}

}  // namespace

std::string RowId(std::string_view key) {
  if (key.size() <= kMaxPlainKey) return std::string(key);
  std::string id(key.substr(0, kIdPrefix));
  const Digest digest = Sha256(key);
  id.append(digest.begin(), digest.end());
  return id;
}

Result<RowState> RowState::Parse(std::string_view key, std::string_view bytes) {
  RowState row;
  if (bytes.empty()) return row;
  const auto* at = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto* const end = at + bytes.size();
  if (*at++ != kFormat) return Damaged("an unknown format");
  int last_tag = -1;
  while (at != end) {
    const std::uint8_t tag = *at++;
    std::uint64_t size = 0;
    at = algorithm::GetVarint(at, end, size);
    if (at == nullptr || size > static_cast<std::uint64_t>(end - at)) return Damaged("truncated");
    if (tag <= last_tag) return Damaged("sections out of order");
    last_tag = tag;
    const std::span<const std::uint8_t> section(at, size);
    at += size;
    if (tag == kKeyTag) {
      if (!std::ranges::equal(section, key, {}, {},
                              [](char c) { return static_cast<std::uint8_t>(c); })) {
        return Error{Code::kAlreadyExists, "the row belongs to another key"};
      }
      continue;
    }
    const algorithm::Descriptor* known = algorithm::FindTag(tag);
    if (known == nullptr) return Damaged("an unknown section");
    if (section.empty() || !known->valid(section)) return Damaged("not a state");
    row.states_[known->algorithm].assign(section.begin(), section.end());
  }
  return row;
}

std::string RowState::Encode(std::string_view key) const {
  std::string out;
  for (const algorithm::Descriptor& each : algorithm::kAlgorithms) {
    const Bytes& state = states_[each.algorithm];
    if (state.empty()) continue;
    if (out.empty()) out.push_back(static_cast<char>(kFormat));
    AppendSection(out, static_cast<std::uint8_t>(each.algorithm),
                  {reinterpret_cast<const char*>(state.data()), state.size()});
  }
  if (!out.empty() && key.size() > kMaxPlainKey) AppendSection(out, kKeyTag, key);
  return out;
}

Nanos RowState::FreshAt() const noexcept {
  Nanos latest = 0;
  for (const algorithm::Descriptor& each : algorithm::kAlgorithms) {
    const Bytes& state = states_[each.algorithm];
    if (!state.empty()) latest = std::max(latest, each.fresh_at(View(state)));
  }
  return latest;
}

RowSummary Summarize(std::string_view id, std::string_view bytes) {
  RowSummary summary;
  if (id.size() <= kMaxPlainKey) summary.key = id;
  const auto* at = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const auto* const end = at + bytes.size();
  if (at == end || *at++ != kFormat) return summary;
  while (at != end) {
    const std::uint8_t tag = *at++;
    std::uint64_t size = 0;
    at = algorithm::GetVarint(at, end, size);
    if (at == nullptr) return summary;
    if (const algorithm::Descriptor* known = algorithm::FindTag(tag)) {
      summary.algorithms.push_back(known->algorithm);
    }
    if (size > static_cast<std::uint64_t>(end - at)) return summary;
    if (tag == kKeyTag) summary.key.assign(reinterpret_cast<const char*>(at), size);
    at += size;
  }
  return summary;
}

}  // namespace weir::store::sql
