#pragma once

// The statements of notify on SQLite: files of sql/, by the name that each has there.

namespace weir::notify::sqlite {

// batch.sql
extern const char* const kReadLimit;
extern const char* const kFindKey;
extern const char* const kPutKey;
extern const char* const kPutEvent;
extern const char* const kPutMessage;
extern const char* const kWriteCounts;

// gateway.sql
extern const char* const kCountOutbox;
extern const char* const kRemoveLimit;
extern const char* const kSweepKeys;
extern const char* const kSweepMessages;
extern const char* const kPutLimit;
extern const char* const kAdjustLimit;
extern const char* const kEnsureLimit;

// ledger.sql
extern const char* const kSelectMessage;
extern const char* const kSelectDead;
extern const char* const kDeleteDead;
extern const char* const kRequeueMessage;
extern const char* const kReadPreferences;
extern const char* const kListUsers;
extern const char* const kPutPreferences;

// outbox_sender.sql
extern const char* const kCountDead;
extern const char* const kKeepDead;
extern const char* const kKeepDelayed;
extern const char* const kSetEnd;
extern const char* const kReadOutbox;
extern const char* const kDeleteEvent;
extern const char* const kHasDue;
extern const char* const kReleaseDue;
extern const char* const kDeleteDue;

// The steps of Migrations().
extern const char* const kTables;
extern const char* const kStates;

}  // namespace weir::notify::sqlite
