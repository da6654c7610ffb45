#pragma once

// What the words under `weir policy` share.

#include <simdjson.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "remote/remote.h"
#include "weir/result.h"

namespace weir::app {

/// Calls `visit` with every policy of every page; `source`: only of "admin", of "files" or the
/// "default". Reports errors and returns the exit code.
int ForEachPolicy(const Remote& remote, std::string_view source,
                  const std::function<void(simdjson::dom::element)>& visit);

/// enforced, shadow or unlimited, and whether an override says so.
std::string StateOf(simdjson::dom::element policy);

/// How much it grants: "5 in 1m", "20, refill 5 per 1s", "3 at once", "unlimited"; empty for an
/// override.
std::string LimitOf(simdjson::dom::element policy);

/// What it applies to: "user=*, route=/v1/pay", with "api: " before it if its domain has a name.
std::string AppliesTo(simdjson::dom::element policy);

/// On standard error: the service's warnings about a change of the policy, except those in `said`.
void PrintWarnings(const std::string& key, const ServiceReply& reply,
                   const std::vector<std::string>& said = {});

/// --expires as the JSON of expiresAt: a time, how long from now, or "never"; empty if it was not
/// given.
Result<std::string> EndValue(const std::string& expires);

/// Which changes a command is about.
struct UndoOf {
  std::string what = {};                                    ///< for messages: "a policy"
  std::function<bool(std::string_view target)> is_it = {};  ///< none: all are
};

/// Undoes a change of the audit log, and prints what it was and which would be next; `expires`
/// is --expires. `of`: what the change must be of to be undone; empty: anything. Returns the
/// exit code: that of `show` if it was undone.
int Undo(const Remote& remote, std::int64_t change, const std::string& expires, const UndoOf& of,
         const std::function<int(const ServiceReply&)>& show);

/// weir policy enforce | shadow.
void AddPolicyTrial(Syntax policy_word);

}  // namespace weir::app
