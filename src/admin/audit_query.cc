#include "admin/audit_query.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace weir::policy {
namespace {

/// `wanted` is an action, "policy.update", or the part before the dot.
bool Is(std::string_view action, std::string_view wanted) {
  return action.starts_with(wanted) &&
         (action.size() == wanted.size() || action[wanted.size()] == '.');
}

bool IsAmong(const std::vector<std::string>& actions, const AuditEntry& entry) {
  return std::any_of(actions.begin(), actions.end(),
                     [&](const std::string& wanted) { return Is(entry.action, wanted); });
}

/// (action = ? OR action LIKE ? OR …)
void AddActions(AuditCondition& condition, const std::vector<std::string>& actions) {
  condition.text += '(';
  for (const std::string& action : actions) {
    if (condition.text.back() != '(') condition.text += " OR ";
    condition.text += "action = ? OR action LIKE ?";
    condition.values.emplace_back(action);
    condition.values.emplace_back(action + ".%");
  }
  condition.text += ')';
}

}  // namespace

Result<std::vector<AuditEntry>> SelectActions(const AuditQuery& query, const ReadEntryPage& read) {
  if (query.actions.empty() && query.except.empty()) return read(query.before, query.limit);
  constexpr std::size_t kPage = 1000;
  std::vector<AuditEntry> found;
  std::int64_t before = query.before;
  for (;;) {
    Result<std::vector<AuditEntry>> page = read(before, kPage);
    if (!page.ok()) return page;
    for (AuditEntry& entry : *page) {
      before = entry.id;
      if (!query.actions.empty() && !IsAmong(query.actions, entry)) continue;
      if (IsAmong(query.except, entry)) continue;
      found.push_back(std::move(entry));
      if (found.size() == query.limit) return found;
    }
    if (page->size() < kPage) return found;
  }
}

AuditCondition ConditionOf(const AuditQuery& query) {
  AuditCondition condition{query.before == 0 ? "id > ?" : "id < ?", {query.before}};
  if (!query.target.empty()) {
    condition.text += " AND target = ?";
    condition.values.emplace_back(query.target);
  }
  if (!query.actions.empty()) {
    condition.text += " AND ";
    AddActions(condition, query.actions);
  }
  if (!query.except.empty()) {
    condition.text += " AND NOT ";
    AddActions(condition, query.except);
  }
  condition.text += " ORDER BY id DESC LIMIT ?";
  condition.values.emplace_back(static_cast<std::int64_t>(query.limit));
  return condition;
}

}  // namespace weir::policy
