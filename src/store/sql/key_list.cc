#include "store/sql/key_list.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>

#include "base/hex.h"
#include "base/percent.h"
#include "store/sql/row.h"

namespace weir::store::sql {
namespace {

using Clock = std::chrono::steady_clock;

/// Expired rows do not fill a page; up to this many reads are made for one.
constexpr int kMaxLooks = 20;
constexpr std::chrono::milliseconds kLongest{500};

// Ids may contain any bytes, and cursors are sent in headers.
std::string ToHex(std::string_view bytes) {
  std::string digits;
  for (const char c : bytes) AppendHex(digits, static_cast<unsigned char>(c));
  return digits;
}

std::optional<std::string> FromHex(std::string_view digits) {
  if (digits.size() % 2 != 0 || digits.size() > 2 * kMaxRowId) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = HexDigit(digits[i]);
    const int low = HexDigit(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

/// Adds the keys of a row.
void Add(const RowHead& row, std::string_view prefix, KeyPage& page) {
  if (row.stale) return;
  const RowSummary found = Summarize(row.id, row.state);
  if (found.key.empty() || !std::string_view(found.key).starts_with(prefix)) return;
  for (const Algorithm algorithm : found.algorithms) page.keys.push_back({found.key, algorithm});
}

}  // namespace

Result<KeyPage> ReadKeys(const KeyQuery& query, const ReadRows& read_rows) {
  std::optional<std::string> after = FromHex(query.cursor);
  if (!after)
    return Error{Code::kInvalidArgument, "cursor: must be one that a page of keys returned"};
  *after = std::max(*after, JustBefore(query.prefix));
  // The id of a long key has its beginning.
  const std::string begins = query.prefix.substr(0, kIdPrefix);
  const auto deadline = Clock::now() + kLongest;
  KeyPage page;
  for (int look = 0; look < kMaxLooks && page.keys.size() < query.limit; ++look) {
    if (look > 0 && Clock::now() >= deadline) break;
    const std::size_t wanted = query.limit - page.keys.size();
    const Result<std::vector<RowHead>> rows = read_rows(*after, wanted);
    if (!rows.ok()) return rows.error();
    for (const RowHead& row : *rows) {
      *after = row.id;
      if (!row.id.starts_with(begins) && row.id > begins) return page;
      Add(row, query.prefix, page);
    }
    if (rows->size() < wanted) return page;
  }
  page.next = ToHex(*after);
  return page;
}

}  // namespace weir::store::sql
