#pragma once

// The statements of policies on servers: files of sql/, by the name that each has there.

namespace weir::policy::sql {

// policies.sql
extern const char* const kReadChanges;
extern const char* const kLockState;
extern const char* const kWriteState;
extern const char* const kReadPolicies;
extern const char* const kReadPolicy;
extern const char* const kCountPolicies;
extern const char* const kInsertPolicy;
extern const char* const kDeletePolicy;
extern const char* const kInsertMatch;
extern const char* const kDeleteMatches;

// audit.sql
extern const char* const kInsertEntry;
extern const char* const kSelectEntries;
extern const char* const kReadEntry;
extern const char* const kReadHistory;
extern const char* const kReadHistoryOf;
extern const char* const kReadLastEntry;

}  // namespace weir::policy::sql
