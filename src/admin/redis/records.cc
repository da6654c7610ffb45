#include "admin/redis/records.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "admin/policy_row.h"
#include "base/number.h"

namespace weir::policy::redis {
namespace {

/// The fields of a record as the columns of a row. Fields that a record of an older version lacks
/// are 0 or empty.
class Record {
 public:
  /// nullopt if the text is not a record.
  static std::optional<Record> Parse(std::string_view text) {
    Record record;
    while (!text.empty()) {
      const std::size_t digits = std::min(text.find(':'), text.size());
      const auto size = ParseNumber<std::size_t>(text.substr(0, digits));
      // The colon before the field and the comma after it.
      const std::size_t around = digits + 2;
      const bool whole = size && text.size() >= around && *size <= text.size() - around &&
                         text[digits + 1 + *size] == ',';
      if (!whole) return std::nullopt;
      record.fields_.push_back(text.substr(digits + 1, *size));
      text.remove_prefix(around + *size);
    }
    return record;
  }

  std::size_t size() const noexcept { return fields_.size(); }
  std::string Text(int column) const {
    const auto at = static_cast<std::size_t>(column);
    return at < fields_.size() ? std::string(fields_[at]) : std::string();
  }
  std::int64_t Int(int column) const { return ParseNumber<std::int64_t>(Text(column)).value_or(0); }

 private:
  std::vector<std::string_view> fields_;
};

void Add(std::string& record, std::string_view text) {
  record.append(std::to_string(text.size())).append(":").append(text).append(",");
}

void Add(std::string& record, std::int64_t number) { Add(record, std::to_string(number)); }

constexpr int kMatchColumn = 0;
constexpr int kFirstColumn = 1;
constexpr std::size_t kLeastPolicyFields = 18;
constexpr std::size_t kEntryFields = 7;

Error Damaged(std::string_view what) {
  return Error{Code::kInternal, "redis: the stored " + std::string(what) + " is damaged"};
}

}  // namespace

std::string PolicyRecord(const StoredPolicy& policy) {
  std::string match;
  for (const EntryMatch& entry : policy.match) {
    Add(match, entry.name);
    Add(match, MatchText(entry));
  }
  std::string record;
  Add(record, match);
  // In the order in which ReadPolicy reads them.
  Add(record, policy.id);
  Add(record, policy.key);
  Add(record, PolicyTypeName(policy.type));
  Add(record, policy.capacity);
  Add(record, policy.refill_rate);
  Add(record, policy.window_seconds);
  Add(record, policy.buckets);
  Add(record, policy.domain);
  Add(record, std::int64_t{policy.has_match});
  Add(record, std::int64_t{policy.shadow});
  Add(record, std::int64_t{policy.unlimited});
  Add(record, BehaviourWords(policy));
  Add(record, policy.cost);
  Add(record, policy.version);
  Add(record, policy.created_at);
  Add(record, policy.updated_at);
  Add(record, policy.expires_at);
  return record;
}

Result<StoredPolicy> ReadPolicyRecord(std::string_view record) {
  const std::optional<Record> row = Record::Parse(record);
  if (!row || row->size() < kLeastPolicyFields) return Damaged("policy");
  Result<StoredPolicy> policy = ReadPolicy(*row, kFirstColumn);
  if (!policy.ok()) return policy.error();
  const std::string list = row->Text(kMatchColumn);
  const std::optional<Record> match = Record::Parse(list);
  if (!match || match->size() % 2 != 0) return Damaged("policy '" + policy->key + "'");
  for (int i = 0; static_cast<std::size_t>(i) < match->size(); i += 2) {
    policy->match.push_back(MakeEntryMatch(match->Text(i), match->Text(i + 1)));
  }
  return policy;
}

std::string EntryRecord(const AuditEntry& entry) {
  std::string record;
  Add(record, entry.at);
  Add(record, entry.who);
  Add(record, entry.action);
  Add(record, entry.target);
  Add(record, entry.before);
  Add(record, entry.after);
  Add(record, entry.undoes);
  return record;
}

Result<AuditEntry> ReadEntryRecord(std::int64_t id, std::string_view record) {
  const std::optional<Record> row = Record::Parse(record);
  if (!row || row->size() < kEntryFields) return Damaged("change " + std::to_string(id));
  return AuditEntry{.id = id,
                    .at = row->Int(0),
                    .who = row->Text(1),
                    .action = row->Text(2),
                    .target = row->Text(3),
                    .before = row->Text(4),
                    .after = row->Text(5),
                    .undoes = row->Int(6)};
}

}  // namespace weir::policy::redis
