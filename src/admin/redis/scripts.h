#pragma once

// The scripts on the policies in Redis, each of them atomic. All keys have one hash tag, so that
// they are in one slot of a cluster:
//
//   weir:{weir-policies}:state     hash: the number of changes, the last ids, the format, the
//                                  epoch, and which changes of other epochs ("of:…") are in it
//   weir:{weir-policies}:policies  hash: key → record
//   weir:{weir-policies}:entries   hash: id → record of the audit log
//   weir:{weir-policies}:ids       sorted set: the ids of the entries
//   weir:{weir-policies}:history   sorted set: the ids of changes of policies
//   weir:{weir-policies}:of:…#     sorted set: the ids of one target's entries
//
// The last byte of each is not an algorithm's letter, so none is mistaken for a limit's key.

#include <string>
#include <string_view>

#include "drivers/redis/script.h"

namespace weir::policy::redis {

inline constexpr std::string_view kState = "weir:{weir-policies}:state";
inline constexpr std::string_view kPolicies = "weir:{weir-policies}:policies";
inline constexpr std::string_view kEntries = "weir:{weir-policies}:entries";
inline constexpr std::string_view kIds = "weir:{weir-policies}:ids";
inline constexpr std::string_view kHistory = "weir:{weir-policies}:history";
std::string TargetKey(std::string_view target);

/// The format written now; a state with a higher one was written by another program.
inline constexpr std::int64_t kFormat = 1;

using weir::redis::Script;

/// state; epoch, changes → changes, format, whether those changes of that epoch are in it
const Script& CountScript();
/// state policies; cursor, count → changes, next cursor, [key, record, …], epoch
const Script& PageScript();
/// state policies entries of; key, epoch, changes → changes, last policy, record, policies, last
/// id, last entry, epoch, whether those changes of that epoch are in it
const Script& LookScript();
/// state policies entries ids history of; expected changes, key, record (empty: delete), last
/// policy, entry, expected epoch, epoch for a state without one → changes, or -1 if there were
/// other changes
const Script& MakeScript();
/// state entries ids history of; entry, is it a policy's → id
const Script& AppendScript();
/// ids, entries; before (0: all), limit → [id, entry, …], latest first
const Script& ListScript();
/// entries; id → entry
const Script& FindScript();
/// state ids entries; after, limit → last id, [id, entry, …], oldest first
const Script& OldestScript();
/// policies entries ids history of; key of the policy or empty, versions to keep, ids… → how many
/// were deleted
const Script& TrimScript();
/// state policies; epoch, changes, key, record, … → 1, or 0 if those changes are in it
const Script& PutBackScript();
/// state; epoch, changes, how far to leap, last policy, new epoch → 1, or 0 if those changes are in
/// it
const Script& FinishScript();

}  // namespace weir::policy::redis
