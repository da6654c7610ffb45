#include "slots/sqlite/claim_notes.h"

#include <string>

#include "slots/sqlite/sql.h"

namespace weir::slots::sqlite {

using weir::sqlite::Connection;
using weir::sqlite::Statement;

Status NoteClaim(Connection& connection, const ClaimRequest& request, const Claim& claim) {
  return connection.Run(kNoteClaim, claim.now - claim.now % kNoteMillis, request.config, request.by,
                        static_cast<std::int64_t>(claim.events.size()));
}

Result<std::vector<ClaimNote>> TakeClaimNotes(Connection& connection, Millis now) {
  const Millis at = now > 0 ? now : MachineMillis();
  auto notes = connection.ReadAll(
      kFindNotes,
      [](const Statement& row) {
        return ClaimNote{row.Int(0), std::string(row.Text(1)), std::string(row.Text(2)),
                         row.Int(3)};
      },
      at - 2 * kNoteMillis, at, static_cast<std::int64_t>(kMaxNotes));
  if (!notes.ok()) return notes.error();
  for (const ClaimNote& note : *notes) {
    Status s = connection.Run(kTakeNote, note.minute, note.config, note.by, at + kNoteMillis);
    if (!s.ok()) return s.error();
  }
  return notes;
}

Result<std::size_t> ForgetClaimNotes(Connection& connection, const std::vector<ClaimNote>& notes) {
  std::size_t forgotten = 0;
  for (const ClaimNote& note : notes) {
    Status s = connection.Run(kForgetNote, note.minute, note.config, note.by, note.events);
    if (!s.ok()) return s.error();
    forgotten += static_cast<std::size_t>(connection.changes());
  }
  return forgotten;
}

}  // namespace weir::slots::sqlite
