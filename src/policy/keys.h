#pragma once

// The names of buckets in the store, readable and unambiguous:
//   api/per-user|user:42         policy per-user of domain api, for user 42
//   api/pay|route:/v1/pay|user:42
//   key|user-123                 a bare key
//   api/%override3600|user:42    a one-hour quota that came with the request
//   api/per-user|user:ab…|%long:9f0c…   a name that would be too long: its beginning, a hash of all
// Entries are sorted by name, however the request or the policy orders them.
// Values escape `|`, `%` and control bytes as %XX, a domain `/` as well, an
// entry name `:` as well; so two different (policy, values) never have the same
// text.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/definition.h"
#include "policy/request.h"

namespace weir::policy {

/// The longest key. The functions below cut longer ones, and end them with a hash, so that a value
/// is limited however long it is: often the caller has chosen it, and could profit from an error.
inline constexpr std::size_t kMaxKeyBytes = 4096;

void AppendEscaped(std::string& out, std::string_view text);
/// The name of an entry as used in keys.
void AppendEntryName(std::string& out, std::string_view name);

/// The parts of a policy's keys around the values that its "*" entries match, in order of entry
/// names: one more than there are such entries.
std::vector<std::string> KeyParts(const Definition& definition);

/// Joins parts and values. Requires values.size() + 1 >= parts.size().
void AppendKey(std::string& out, std::span<const std::string> parts,
               std::span<const std::string_view> values);

void AppendBareKey(std::string& out, std::string_view key);

/// All entries of the descriptor, sorted by name, and the length of the request's own quota.
void AppendOverrideKey(std::string& out, std::string_view domain, Descriptor descriptor,
                       const Quota& quota);

}  // namespace weir::policy
