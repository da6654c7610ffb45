#pragma once

// What an explanation leaves out: policies that a request would meet if it had other entries, and
// entries that no policy looks at.

#include <string>
#include <string_view>
#include <vector>

#include "policy/policy_set.h"
#include "policy/request.h"

namespace weir::admin {

struct ExplainNotes {
  std::vector<std::string> sentences = {};
  /// What the names of buckets contain that may limit the same client; empty: nothing to look for.
  std::string search = {};
};

/// For entries: policies that look at some of them and at others that are missing, chains that have
/// them in another order, and, with `misspelt`, entries that no policy of the domain looks at.
/// Takes bounded time, so with many thousands of policies it may not find all.
ExplainNotes NotesOn(const policy::PolicySet& set, std::string_view domain,
                     policy::Descriptor descriptor, bool misspelt);

/// The same for entries that name no domain and that no policy applies to: all domains.
ExplainNotes NotesOnAnyDomain(const policy::PolicySet& set, policy::Descriptor descriptor);

/// For a bare key: that policies may count it as the value of an entry, if there are any.
ExplainNotes NotesOnKey(const policy::PolicySet& set, std::string_view key);

}  // namespace weir::admin
