#include "admin/file_changes.h"

#include <map>
#include <string_view>
#include <utility>

#include "admin/policy_store.h"
#include "algorithm/algorithms.h"
#include "base/json_writer.h"

namespace weir::admin {
namespace {

constexpr std::size_t kMostEntries = 1000;

using Named = std::map<std::string_view, const policy::Definition*>;

/// The policies of files, by domain and name as in their bucket names.
Named OfFiles(const policy::PolicySet& set) {
  Named named;
  for (const policy::Policy& policy : set.policies()) {
    if (policy.definition.source == kAdminSource) continue;
    const std::string_view start = policy.key_parts.front();
    named.emplace(start.substr(0, start.find('|')), &policy.definition);
  }
  return named;
}

/// Ignores locations: lines of a file move when others change.
bool SameButPlace(const policy::Definition& a, const policy::Definition& b) {
  policy::Definition moved = policy::AsInFile(a);
  moved.source = b.source;
  return moved == policy::AsInFile(b);
}

/// "/etc/weir/policies.yaml:7:3" → "file policies.yaml"; "xds:edge:7:3" → "xds edge".
std::string WhoWrote(std::string_view source) {
  constexpr std::string_view kManaged = "xds:";
  if (source.starts_with(kManaged)) {
    source = source.substr(kManaged.size());
    return "xds " + std::string(source.substr(0, source.find(':')));
  }
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

void AppendFilePolicy(JsonWriter& json, const policy::Definition& definition,
                      std::string_view source) {
  json.Field("policyKey", definition.name).Field("domain", definition.domain);
  if (definition.quota) {
    json.Field("type", algorithm::Of(*definition.quota).type);
    json.Field("capacity", definition.quota->limit());
  }
  json.Field("quota", definition.quota ? definition.quota->ToString() : "unlimited");
  json.Key("match").BeginObject();
  for (const policy::EntryMatch& match : definition.match) {
    json.AnyKey(match.name).Value(policy::MatchText(match));
  }
  json.EndObject();
  json.Field("shadow", definition.shadow).Field("unlimited", !definition.quota);
  json.Field("onStoreError", policy::OnStoreErrorName(definition.on_store_error));
  policy::AppendCharging(json, definition.mode, definition.overdraw, definition.charge);
  if (!definition.store.empty()) json.Field("store", definition.store);
  if (definition.blocked) json.Field("blocked", true);
  if (definition.quota_mode) json.Field("quotaMode", true);
  if (!definition.limit_name.empty()) json.Field("limitName", definition.limit_name);
  if (!definition.metadata.empty()) json.RawField("metadata", definition.metadata);
  json.Field("cost", definition.cost).Field("source", source).Field("readOnly", true);
}

std::string FilePolicyJson(const policy::Definition& definition) {
  return JsonObject([&](JsonWriter& json) { AppendFilePolicy(json, definition, "file"); });
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
    std::string counts;
    JsonWriter(counts)
        .BeginObject()
        .Field("changes", changes)
        .Field("listed", kMostEntries)
        .EndObject();
    entries.push_back({.who = entries.front().who,
                       .action = "policy.file",
                       .target = std::string(kFileTarget),
                       .after = std::move(counts)});
  }
  return entries;
}

}  // namespace weir::admin
