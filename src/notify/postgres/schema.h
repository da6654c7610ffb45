#pragma once

#include <span>

namespace weir::notify::postgres {

std::span<const char* const> Migrations() noexcept;

/// The texts of its steps, and the statements: files of sql/, which say what each one's parameters
/// are.
extern const char* const kTables;
extern const char* const kStates;
extern const char* const kSenders;

// limits.sql
extern const char* const kLockRows;
extern const char* const kReadRows;
extern const char* const kWriteRows;
extern const char* const kAddCounts;
extern const char* const kRefreshRows;
extern const char* const kPutRow;
extern const char* const kAdjustRow;
extern const char* const kEnsureRow;
extern const char* const kRemoveRow;
extern const char* const kBounds;

// keys.sql
extern const char* const kFindKeys;
extern const char* const kPutKeys;
extern const char* const kSweepKeys;

// messages.sql
extern const char* const kPutMessages;
extern const char* const kSweepMessages;

// ledger.sql
extern const char* const kFindMessage;
extern const char* const kListMessagesOfUser;
extern const char* const kListMessagesOfState;
extern const char* const kListDead;
extern const char* const kListDeadOfUser;
extern const char* const kFindDead;
extern const char* const kCountDead;
extern const char* const kListUsers;
extern const char* const kPutPreferences;
extern const char* const kFindPreferences;
extern const char* const kReport;
extern const char* const kForgetDead;
extern const char* const kKeepDead;
extern const char* const kKeepDelayed;
extern const char* const kFindSettled;
extern const char* const kTakeDue;
extern const char* const kForgetDelayed;
extern const char* const kClaimDead;
extern const char* const kForgetClaimed;
extern const char* const kReturnClaimed;
extern const char* const kReturnExpired;
extern const char* const kDropDead;

// sender_figures.sql
extern const char* const kNoteSender;
extern const char* const kFoldSenders;
extern const char* const kSumSenders;

}  // namespace weir::notify::postgres
