#pragma once

// The statements of slots on SQLite: files of sql/, by the name that each has there.

namespace weir::slots::sqlite {

// archive.sql
extern const char* const kConfigIds;
extern const char* const kFindGone;
extern const char* const kCopyToArchive;
extern const char* const kDeleteEvent;
extern const char* const kDeleteChanges;
extern const char* const kCountArchived;
extern const char* const kDropArchived;
extern const char* const kLookInArchive;

// backlogs.sql
extern const char* const kCountDue;
extern const char* const kCountClaimed;
extern const char* const kCountLater;
extern const char* const kCountSoon;
extern const char* const kReadGranted;
extern const char* const kCountFailed;
extern const char* const kHasExecuted;
extern const char* const kConfigNames;

// claim_notes.sql
extern const char* const kNoteClaim;
extern const char* const kFindNotes;
extern const char* const kTakeNote;
extern const char* const kForgetNote;

// configs.sql
extern const char* const kSelectConfig;
extern const char* const kReadTenants;
extern const char* const kInsertTenant;
extern const char* const kDeleteTenantCounters;
extern const char* const kCountTenants;
extern const char* const kClassifyEvents;
extern const char* const kClearCarried;
extern const char* const kHasOtherSizes;
extern const char* const kCarryOtherSizes;
extern const char* const kCloseFullWindows;
extern const char* const kAddSuccessors;
extern const char* const kNextVersion;
extern const char* const kNameOf;
extern const char* const kInsertConfig;
extern const char* const kDeactivateConfig;

// counts.sql
extern const char* const kAddGranted;
extern const char* const kAddFinished;
extern const char* const kAddSpilled;
extern const char* const kGrantsUsed;
extern const char* const kLaterWithGrants;

// events.sql
extern const char* const kSelectEvent;
extern const char* const kReadHistory;
extern const char* const kSettleEvent;
extern const char* const kNoteChange;
extern const char* const kCancelEvent;
extern const char* const kReturnEvent;
extern const char* const kNoteFailure;
extern const char* const kForgetFailures;
extern const char* const kWhereDue;
extern const char* const kAndOfConfig;

// execution.sql
extern const char* const kFindEndedLeases;
extern const char* const kEndLease;
extern const char* const kEndOneLease;
extern const char* const kFindDueOfClass;
extern const char* const kClaimEvent;
extern const char* const kFinishEvent;

// restored.sql
extern const char* const kNewestChange;
extern const char* const kNoteFromBackup;
extern const char* const kMarkFromBackup;

// transaction.sql
extern const char* const kInsertEvent;
extern const char* const kUncarry;
extern const char* const kLoadSlot;

// window_table.sql
extern const char* const kUsedByClass;
extern const char* const kFindWindow;
extern const char* const kListOpen;
extern const char* const kCreateWindow;
extern const char* const kTakeInWindow;
extern const char* const kTakeInClass;
extern const char* const kGiveBackWindow;
extern const char* const kGiveBackClass;

// windows.sql
extern const char* const kListWindows;
extern const char* const kVerify;

// The steps of Migrations().
extern const char* const kTables;
extern const char* const kStates;
extern const char* const kArchiveTable;
extern const char* const kFailures;
extern const char* const kClaimNotesTable;

}  // namespace weir::slots::sqlite
