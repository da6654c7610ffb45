#include "slots/sqlite/restored.h"

#include <string>
#include <string_view>

#include "slots/sqlite/sql.h"

namespace weir::slots::sqlite {
namespace {

// A trigger, so that stores that were never restored pay nothing for it.
std::string MarkAssignedUntil(Millis until) {
  return "DROP TRIGGER IF EXISTS rate_limit_event_restored; "
         "CREATE TRIGGER rate_limit_event_restored AFTER INSERT ON rate_limit_event_slot "
         "WHEN new.requested_time <= " +
         std::to_string(until) +
         " BEGIN UPDATE rate_limit_event_slot SET attempts = 1 WHERE event_id = new.event_id; "
         "INSERT INTO rate_limit_event_change VALUES (new.event_id, new.created_at, '" +
         kFromBackup + "', ''); END";
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
  if (Status made = connection.Execute(MarkAssignedUntil(restored.until).c_str()); !made.ok()) {
    return made.error();
  }
  return restored;
}

}  // namespace weir::slots::sqlite
