#include "admin/undo_order.h"

#include <algorithm>
#include <string>

namespace weir::admin {

using policy::AuditEntry;

std::int64_t InEffect(const std::vector<AuditEntry>& entries) {
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    if (entry->undoes == 0) return entry->id;
    // The state is that before the undone change.
    const std::int64_t undone = entry->undoes;
    entry = std::find_if(entry, entries.end(), [&](const auto& e) { return e.id == undone; });
    if (entry == entries.end()) break;
  }
  return 0;
}

weir::Status CheckTurn(const AuditEntry& entry, const std::vector<AuditEntry>& entries,
                       std::string_view otherwise) {
  const std::int64_t turn = InEffect(entries);
  if (entry.id == turn || (!entries.empty() && entry.id == entries.front().id)) return {};
  const std::string change = "change " + std::to_string(entry.id);
  for (const AuditEntry& later : entries) {
    if (later.undoes != entry.id || turn > entry.id) continue;
    const std::string by = "change " + std::to_string(later.id);
    const bool latest = later.id == entries.front().id;
    return Error{Code::kFailedPrecondition, change + " was already undone by " + by +
                                                (latest ? "; undo that to make it again" : "")};
  }
  const std::int64_t first = turn > entry.id || entries.empty() ? turn : entries.front().id;
  return Error{Code::kFailedPrecondition,
               change + " is not the latest of '" + entry.target + "': change " +
                   std::to_string(first) + " came later; undo that first" + std::string(otherwise)};
}

}  // namespace weir::admin
