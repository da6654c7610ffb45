#include "admin/policy_edit.h"

#include <utility>

namespace weir::policy {
namespace {

/// The error for changing a policy that the store does not have; a file may have it.
Error Missing(const PolicyEdit& edit, const Catalog& catalog) {
  if (edit.key == catalog.live().Current()->default_policy().definition.name) {
    return {Code::kFailedPrecondition, "'" + edit.key +
                                           "' is the default policy; change it in the "
                                           "configuration (default_policy)"};
  }
  if (!edit.wanted) {
    const Status in_files = catalog.CheckNotInFile(edit.key);
    return in_files.ok() ? NoSuchPolicy(edit.key) : in_files.error();
  }
  if (edit.wanted->type.is_override()) return NoSuchPolicy(edit.key);
  const Result<Definition> definition = ToDefinition(*edit.wanted);
  if (!definition.ok()) return definition.error();
  const Status free = catalog.CheckFree(*definition);
  const bool in_file = !free.ok() && free.error().code == Code::kAlreadyExists;
  return in_file ? Error{Code::kFailedPrecondition, free.error().message} : NoSuchPolicy(edit.key);
}

Status CheckUndo(const PolicyEdit& edit, const PolicyState& state) {
  if (edit.undoes == 0 || edit.latest == state.last_entry) return {};
  return Error{Code::kFailedPrecondition, "policy '" + edit.key + "' was changed again: change " +
                                              std::to_string(state.last_entry) +
                                              " came later; undo that first, or roll back to a "
                                              "version"};
}

Status CheckVersion(const PolicyEdit& edit, const PolicyState& state) {
  const std::int64_t version = state.now ? state.now->version : 0;
  if (edit.version == 0 || edit.version == version) return {};
  return Error{Code::kFailedPrecondition, "policy '" + edit.key + "' has changed: version " +
                                              std::to_string(edit.version) +
                                              " is no longer current"};
}

Status CheckRoom(const PolicyState& state, const Catalog& catalog) {
  const std::size_t all = state.policies + catalog.status().file_policies;
  if (state.now || all < kMaxPolicies) return {};
  return Error{Code::kResourceExhausted, "there are " + std::to_string(all) +
                                             " policies with those of files, which is the maximum"};
}

/// A policy that cannot be put in force must not be written: it would keep every later change of
/// any policy from being put in force, on all nodes.
Status CheckFits(const PolicyEdit& edit, const PolicyState& state, const Catalog& catalog) {
  if (!edit.wanted) return {};
  if (Status room = CheckRoom(state, catalog); !room.ok()) return room;
  if (edit.wanted->type.is_override()) {
    Result<ShadowOverride> over = ToOverride(*edit.wanted);
    if (!over.ok()) return over.error();
    return state.now ? Status() : catalog.CheckInFile(*over);
  }
  Result<Definition> definition = ToDefinition(*edit.wanted);
  if (!definition.ok()) return definition.error();
  Status free = catalog.CheckFree(*definition);
  if (free.ok() || free.error().code != Code::kAlreadyExists || !state.now) return free;
  // Already set aside, because of a file that was added later: changed for when it comes back.
  const Result<Definition> now = ToDefinition(*state.now);
  const bool aside = now.ok() && !catalog.CheckFree(*now).ok();
  return aside ? Status() : free;
}

/// A policy and an override are different things, though a key may have been both in turn.
Status CheckKind(const PolicyEdit& edit, const PolicyState& state) {
  if (!edit.wanted || !state.now) return {};
  const auto is_override = [](const StoredPolicy& policy) { return policy.type.is_override(); };
  if (is_override(*edit.wanted) == is_override(*state.now)) return {};
  return Error{Code::kFailedPrecondition,
               "'" + edit.key + "' is " +
                   (is_override(*state.now) ? "an override" : "not an override") +
                   "; delete it first to change that"};
}

/// Not every database accepts a zero byte in text.
Status CheckTexts(const StoredPolicy& policy) {
  for (const EntryMatch& entry : policy.match) {
    if (entry.text.find('\0') == std::string::npos) continue;
    return Error{Code::kInvalidArgument, "match." + entry.name + ": must not contain a zero byte"};
  }
  return {};
}

}  // namespace

Status CheckEdit(const PolicyEdit& edit) {
  if (!edit.wanted) return {};
  if (Status texts = CheckTexts(*edit.wanted); !texts.ok()) return texts;
  if (edit.wanted->type.is_override()) {
    const Result<ShadowOverride> over = ToOverride(*edit.wanted);
    return over.ok() ? Status() : Status(over.error());
  }
  if (Result<Definition> definition = ToDefinition(*edit.wanted); !definition.ok()) {
    return definition.error();
  }
  return {};
}

Result<PolicyStep> Decide(const PolicyEdit& edit, const PolicyState& state, Nanos at,
                          const Catalog& catalog) {
  const bool must_exist = edit.must == PolicyEdit::Must::kExist || !edit.wanted;
  // Checked first: a policy that was deleted later is missing, but that is not the error.
  if (Status undo = CheckUndo(edit, state); !undo.ok()) return undo.error();
  if (must_exist && !state.now) return Missing(edit, catalog);
  if (edit.must == PolicyEdit::Must::kBeNew && state.now) {
    return Error{
        Code::kAlreadyExists,
        "a policy with key '" + edit.key +
            "' already exists; `weir policy apply` (PUT /admin/policies/{key}) changes it"};
  }
  if (Status version = CheckVersion(edit, state); !version.ok()) return version.error();
  if (Status kind = CheckKind(edit, state); !kind.ok()) return kind.error();
  if (Status fits = CheckFits(edit, state, catalog); !fits.ok()) return fits.error();
  PolicyStep step{state.now, edit.wanted};
  if (!step.after) return step;
  step.after->id = state.now ? state.now->id : 0;
  step.after->version = state.now ? state.now->version + 1 : state.new_version;
  step.after->created_at = state.now ? state.now->created_at : at;
  step.after->updated_at = at;
  return step;
}

AuditEntry EntryOf(const PolicyEdit& edit, const PolicyStep& step, Nanos at) {
  return {.at = at,
          .who = edit.who,
          .action = edit.action,
          .target = std::string(kPolicyTarget) + edit.key,
          .before = step.before ? ToJson(*step.before) : "",
          .after = step.after ? ToJson(*step.after) : "",
          .undoes = edit.undoes};
}

PolicyChange ChangeOf(AuditEntry entry) {
  constexpr std::string_view kPrefix = "policy.";
  std::string action = entry.action.starts_with(kPrefix) ? entry.action.substr(kPrefix.size())
                                                         : std::move(entry.action);
  return {.id = entry.id,
          .key = entry.target.substr(kPolicyTarget.size()),
          .at = entry.at,
          .who = std::move(entry.who),
          .action = std::move(action),
          .before = std::move(entry.before),
          .after = std::move(entry.after)};
}

}  // namespace weir::policy
