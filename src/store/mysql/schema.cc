#include "store/mysql/schema.h"

#include <algorithm>

#include "drivers/mysql/connection.h"
#include "drivers/mysql/migration.h"
#include "store/mysql/sql.h"

namespace weir::store::mysql {
namespace {

using weir::mysql::AppendLiteral;

// No row is swept between its creation and the transaction that it was created for.
constexpr Nanos kNewRowStays = 10'000'000'000;

// Of one packet: less than any usual max_allowed_packet, of which the least was 1 MiB.
constexpr std::size_t kMostWritten = std::size_t{512} << 10;

}  // namespace

Status Migrate(const std::string& url) {
  const char* const limits[] = {kLimits1};
  if (Status made = weir::mysql::Migrate(url, "limits", limits); !made.ok()) return made;
  // They are for people: limits must not depend on someone with the right to create them. The
  // second version replaces all of the first.
  const char* const views[] = {kViews2, kViews2};
  Status made = weir::mysql::Migrate(url, "views", views);
  return !made.ok() && made.error().code == Code::kPermissionDenied ? Status() : made;
}

// A node that hangs with rows locked loses its locks.
weir::mysql::SessionLimits LimitsOf(std::chrono::milliseconds timeout) {
  const auto whole =
      std::max(std::chrono::ceil<std::chrono::seconds>(timeout), std::chrono::seconds(1));
  return {.lock_wait = whole, .statement = whole, .idle_transaction = whole};
}

void AppendCreateRows(std::string& sql, std::span<const std::string_view> ids, const Clock* clock) {
  const std::string fresh_at =
      clock != nullptr ? std::to_string(clock->Now() + kNewRowStays)
                       : "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) * 1000 + " +
                             std::to_string(kNewRowStays);
  sql += "INSERT IGNORE INTO weir_limits(id, state, fresh_at) VALUES ";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    sql += i == 0 ? "(" : ",(";
    AppendLiteral(sql, ids[i]);
    sql += ",'',";
    sql += fresh_at;
    sql += ')';
  }
}

// Through the primary key, even if the optimizer would scan a small table: so rows are locked in
// key order, and no others.
void AppendLockRows(std::string& sql, std::span<const std::string_view> ids) {
  sql += "SELECT id, state FROM weir_limits FORCE INDEX (PRIMARY) WHERE id IN (";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i != 0) sql += ',';
    AppendLiteral(sql, ids[i]);
  }
  sql += ") ORDER BY id FOR UPDATE";
}

std::span<const sql::Batch::Write> AppendWriteRows(std::string& sql,
                                                   std::span<const sql::Batch::Write> writes) {
  sql += "INSERT INTO weir_limits(id, state, fresh_at) VALUES ";
  std::size_t i = 0;
  // A literal has two digits for each byte.
  for (; i < writes.size() && (i == 0 || sql.size() + 2 * writes[i].state.size() < kMostWritten);
       ++i) {
    sql += i == 0 ? "(" : ",(";
    AppendLiteral(sql, writes[i].id);
    sql += ',';
    AppendLiteral(sql, writes[i].state);
    sql += ',';
    sql += std::to_string(writes[i].fresh_at);
    sql += ')';
  }
  sql += " ON DUPLICATE KEY UPDATE state = VALUES(state), fresh_at = VALUES(fresh_at)";
  return writes.subspan(i);
}

}  // namespace weir::store::mysql
