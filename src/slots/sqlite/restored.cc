#include "slots/sqlite/restored.h"

#include <string>
#include <string_view>

#include "slots/sqlite/sql.h"

namespace weir::slots::sqlite {
namespace {

// Triggers, so that stores which were never restored do not pay for it. See
// postgres/sql/restoring.sql.
std::string MarkAssignedAndMoved(const Restored& restored) {
  const std::string mark =
      " ON rate_limit_event_slot WHEN new.attempts = 0 AND (new.requested_time <= " +
      std::to_string(restored.until) + " OR new.created_at <= " + std::to_string(restored.newest) +
      ") BEGIN UPDATE rate_limit_event_slot SET attempts = 1 WHERE event_id = new.event_id; "
      "INSERT INTO rate_limit_event_change VALUES (new.event_id, unixepoch() * 1000, '" +
      kFromBackup + "', ''); END; ";
  return "DROP TRIGGER IF EXISTS rate_limit_event_restored; "
         "DROP TRIGGER IF EXISTS rate_limit_event_moved; "
         "CREATE TRIGGER rate_limit_event_restored AFTER INSERT" +
         mark + "CREATE TRIGGER rate_limit_event_moved AFTER UPDATE OF requested_time" + mark;
}

}  // namespace

Result<Restored> MarkFromBackup(weir::sqlite::Connection& connection, Millis now) {
  if (now == 0) now = MachineMillis();
  Restored restored{.until = now + kMaxAhead};
  Result<Millis> newest = connection.ReadNumber(kNewestChange);
  if (!newest.ok()) return newest.error();
  restored.newest = *newest;
  Status s = connection.Run(kNoteFromBackup, restored.until, now, std::string_view(kFromBackup));
  if (s.ok()) s = connection.Run(kMarkFromBackup, restored.until);
  if (!s.ok()) return s.error();
  restored.marked = connection.changes();
  if (Status made = connection.Execute(MarkAssignedAndMoved(restored).c_str()); !made.ok()) {
    return made.error();
  }
  return restored;
}

}  // namespace weir::slots::sqlite
