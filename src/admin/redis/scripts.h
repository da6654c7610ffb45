#pragma once

// What is done to the policies in Redis, each at one moment. All keys have one hash tag, so that
// they are in one slot of a cluster:
//
//   weir:{weir-policies}:state     hash: how many changes there were, the last ids, the format, the
//                                  epoch, and which changes of other epochs ("of:…") are in it
//   weir:{weir-policies}:policies  hash: key → record
//   weir:{weir-policies}:entries   hash: id → record of the audit log
//   weir:{weir-policies}:ids       sorted set: the ids of the entries
//   weir:{weir-policies}:history   sorted set: those that are changes of policies
//   weir:{weir-policies}:of:…#     sorted set: those of one target
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

/// What is written now; a state of a higher one is another program's.
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
/// policy, entry, expected epoch, one for a state that has none → changes, or -1 if there were
/// others
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
/// are gone
const Script& TrimScript();
/// state policies; epoch, changes, key, record, … → 1, or 0 if those changes are in it
const Script& PutBackScript();
/// state; epoch, changes, how far to leap, last policy, new epoch → 1, or 0 if those changes are in
/// it
const Script& FinishScript();

}  // namespace weir::policy::redis
