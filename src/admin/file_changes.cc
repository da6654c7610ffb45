#include "admin/file_changes.h"

#include <map>
#include <string_view>
#include <utility>

#include "admin/policy_store.h"
#include "algorithm/algorithms.h"
#include "base/json_text.h"
#include "protocol/http/error.h"

namespace weir::admin {
namespace {

constexpr std::size_t kMostEntries = 1000;

using Named = std::map<std::string_view, const policy::Definition*>;

/// Those of files, by domain and name as their buckets are called.
Named OfFiles(const policy::PolicySet& set) {
  Named named;
  for (const policy::Policy& policy : set.policies()) {
    if (policy.definition.source == kAdminSource) continue;
    const std::string_view start = policy.key_parts.front();
    named.emplace(start.substr(0, start.find('|')), &policy.definition);
  }
  return named;
}

/// Lines of a file move when others change.
bool SameButPlace(const policy::Definition& a, const policy::Definition& b) {
  policy::Definition moved = policy::AsInFile(a);
  moved.source = b.source;
  return moved == policy::AsInFile(b);
}

/// "/etc/weir/policies.yaml:7:3" → "file policies.yaml".
std::string WhoWrote(std::string_view source) {
  source = source.substr(source.find_last_of('/') + 1);
  return "file " + std::string(source.substr(0, source.find(':')));
}

policy::AuditEntry EntryOf(std::string_view name, const policy::Definition* before,
                           const policy::Definition* after) {
  return {.who = WhoWrote((after != nullptr ? after : before)->source),
          .action = "policy.file",
          .target = std::string(kFileTarget).append(name),
          .before = before == nullptr ? "" : FilePolicyJson(policy::AsInFile(*before)),
          .after = after == nullptr ? "" : FilePolicyJson(policy::AsInFile(*after))};
}

}  // namespace

std::string FilePolicyJson(const policy::Definition& definition, std::string_view source) {
  std::string out = "{\"policyKey\":";
  AppendJsonString(out, definition.name);
  out += ",\"domain\":";
  AppendJsonString(out, definition.domain);
  if (definition.quota) {
    out.append(",\"type\":\"").append(algorithm::Of(*definition.quota).type);
    out.append("\",\"capacity\":").append(std::to_string(definition.quota->limit()));
  }
  out += ",\"quota\":";
  AppendJsonString(out, definition.quota ? definition.quota->ToString() : "unlimited");
  out += ",\"match\":{";
  for (std::size_t i = 0; i < definition.match.size(); ++i) {
    if (i != 0) out += ',';
    AppendJsonString(out, definition.match[i].name);
    out += ':';
    AppendJsonString(out, policy::MatchText(definition.match[i]));
  }
  out += definition.shadow ? "},\"shadow\":true" : "},\"shadow\":false";
  out += definition.quota ? ",\"unlimited\":false" : ",\"unlimited\":true";
  out.append(",\"onStoreError\":\"").append(policy::OnStoreErrorName(definition.on_store_error));
  out += '"';
  out += policy::ChargingJson(definition.mode, definition.overdraw, definition.charge);
  if (!definition.store.empty()) {
    out += ",\"store\":";
    AppendJsonString(out, definition.store);
  }
  if (definition.blocked) out += ",\"blocked\":true";
  if (definition.quota_mode) out += ",\"quotaMode\":true";
  if (!definition.limit_name.empty()) {
    out += ",\"limitName\":";
    AppendJsonString(out, definition.limit_name);
  }
  out.append(",\"cost\":").append(std::to_string(definition.cost));
  out.append(",\"source\":\"").append(source);
  return out += "\",\"readOnly\":true}";
}

std::vector<policy::AuditEntry> FileChanges(const policy::PolicySet& before,
                                            const policy::PolicySet& after) {
  const Named was = OfFiles(before);
  const Named is = OfFiles(after);
  std::vector<policy::AuditEntry> entries;
  std::size_t changes = 0;
  const auto add = [&](std::string_view name, const policy::Definition* from,
                       const policy::Definition* to) {
    if (++changes <= kMostEntries) entries.push_back(EntryOf(name, from, to));
  };
  for (const auto& [name, definition] : was) {
    const auto now = is.find(name);
    if (now == is.end()) {
      add(name, definition, nullptr);
    } else if (!SameButPlace(*definition, *now->second)) {
      add(name, definition, now->second);
    }
  }
  for (const auto& [name, definition] : is) {
    if (was.find(name) == was.end()) add(name, nullptr, definition);
  }
  if (changes > kMostEntries) {
    entries.push_back({.who = entries.front().who,
                       .action = "policy.file",
                       .target = std::string(kFileTarget),
                       .after = "{\"changes\":" + std::to_string(changes) +
                                ",\"listed\":" + std::to_string(kMostEntries) + "}"});
  }
  return entries;
}

}  // namespace weir::admin
