#pragma once

// The statements of policies on SQLite: files of sql/, by the name that each has there.

namespace weir::policy::sqlite {

// policies.sql
extern const char* const kDeleteMatches;
extern const char* const kInsertMatch;
extern const char* const kReadMatches;
extern const char* const kReadPolicies;
extern const char* const kInsertPolicy;
extern const char* const kUpdatePolicy;
extern const char* const kDeletePolicy;
extern const char* const kAppendVersion;
extern const char* const kTrimVersions;
extern const char* const kReadVersions;
extern const char* const kReadVersionsOf;
extern const char* const kCountPolicies;

// audit.sql
extern const char* const kSelectEntries;
extern const char* const kInsertEntry;
extern const char* const kTrimEntries;
extern const char* const kLatestEntryOf;

// memory.sql
extern const char* const kFindSource;
extern const char* const kForgetAll;
extern const char* const kInsertSource;

// implied_domain.sql
extern const char* const kReadImpliedDomain;
extern const char* const kWriteImpliedDomain;

// Steps of the tables.
extern const char* const kPolicies1;
extern const char* const kPolicies2;
extern const char* const kAudit1;
extern const char* const kSource1;
extern const char* const kImpliedDomain1;

}  // namespace weir::policy::sqlite
