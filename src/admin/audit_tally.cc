#include "admin/audit_tally.h"

#include <utility>

#include "base/json_writer.h"
#include "telemetry/log.h"

namespace weir::admin {

void AuditTally::Note(std::string who, std::string_view action, std::string_view target,
                      std::size_t count) {
  constexpr std::size_t kMaxTarget = 256;
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  Key key{std::move(who), std::string(action)};
  if (noted_.size() >= kCallers && !noted_.contains(key)) key.first = "others";
  Noted& noted = noted_[std::move(key)];
  if (noted.count == 0) noted.target = target.substr(0, kMaxTarget);
  noted.count += count;
}

void AuditTally::Flush() {
  constexpr int kMinute = 60;
  std::vector<policy::AuditEntry> due;
  {
    const std::lock_guard lock(mutex_);
    for (auto one = noted_.begin(); one != noted_.end();) {
      Noted& noted = one->second;
      if (noted.wait > 0 && --noted.wait > 0) {
        ++one;
      } else if (noted.count == 0) {
        one = noted_.erase(one);  // quiet for a minute
      } else {
        due.push_back(Take(one->first, noted));
        noted.wait = kMinute;
        ++one;
      }
    }
  }
  Write(std::move(due));
}

void AuditTally::FlushAll() {
  std::vector<policy::AuditEntry> all;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [key, noted] : noted_) {
      if (noted.count > 0) all.push_back(Take(key, noted));
    }
  }
  Write(std::move(all));
}

policy::AuditEntry AuditTally::Take(const Key& key, Noted& noted) {
  policy::AuditEntry entry{.who = key.first, .action = key.second, .target = noted.target};
  JsonWriter(entry.after).BeginObject().Field("count", std::exchange(noted.count, 0)).EndObject();
  return entry;
}

void AuditTally::Write(std::vector<policy::AuditEntry> entries) {
  for (policy::AuditEntry& entry : entries) {
    audit_.Append(std::move(entry), [](const Result<std::int64_t>& written) {
      if (written.ok()) return;
      telemetry::Log(telemetry::Level::kError, "cannot write to the audit log",
                     {{"error", std::string_view(written.error().message)}});
    });
  }
}

}  // namespace weir::admin
