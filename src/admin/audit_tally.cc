#include "admin/audit_tally.h"

#include <utility>

#include "base/json_writer.h"
#include "telemetry/log.h"

namespace weir::admin {

void AuditTally::Note(std::string who, std::string_view action, std::string_view target,
                      std::size_t count) {
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  Add({std::move(who), std::string(action)}, target, count);
}

void AuditTally::Add(Key key, std::string_view target, std::uint64_t count) {
  constexpr std::size_t kMaxTarget = 256;
  if (noted_.size() >= kCallers && !noted_.contains(key)) key.first = "others";
  Noted& noted = noted_[std::move(key)];
  if (noted.count == 0) noted.target = target.substr(0, kMaxTarget);
  noted.count += count;
}

void AuditTally::Flush() {
  constexpr int kMinute = 60;
  std::vector<Due> due;
  {
    const std::lock_guard lock(mutex_);
    for (auto one = noted_.begin(); one != noted_.end();) {
      Noted& noted = one->second;
      if (noted.wait > 0 && --noted.wait > 0) {
        ++one;
      } else if (noted.count == 0) {
        one = noted_.erase(one);  // nothing for a minute
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
  std::vector<Due> all;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    for (auto& [key, noted] : noted_) {
      if (noted.count > 0) all.push_back(Take(key, noted));
    }
  }
  Write(std::move(all));
}

AuditTally::Due AuditTally::Take(const Key& key, Noted& noted) {
  return {key, noted.target, std::exchange(noted.count, 0)};
}

void AuditTally::Write(std::vector<Due> all) {
  for (Due& due : all) {
    policy::AuditEntry entry{.who = due.key.first, .action = due.key.second, .target = due.target};
    JsonWriter(entry.after).BeginObject().Field("count", due.count).EndObject();
    audit_.Append(std::move(entry),
                  [this, due = std::move(due)](const Result<std::int64_t>& written) {
                    if (!written.ok()) OnFailed(due, written.error());
                  });
  }
}

void AuditTally::OnFailed(const Due& due, const Error& why) {
  const bool unknown = why.code == Code::kDeadlineExceeded;
  bool again = false;
  {
    const std::lock_guard lock(mutex_);
    again = !unknown && !ended_;
    if (again) Add(due.key, due.target, due.count);
  }
  const std::string_view what = again ? "cannot write to the audit log; will try again"
                                : unknown
                                    ? "it is unknown whether an entry was written to the audit log"
                                    : "cannot write to the audit log; the entry is lost";
  telemetry::Log(telemetry::Level::kError, what,
                 {{"who", std::string_view(due.key.first)},
                  {"action", std::string_view(due.key.second)},
                  {"target", std::string_view(due.target)},
                  {"count", static_cast<std::int64_t>(due.count)},
                  {"error", std::string_view(why.message)}});
}

}  // namespace weir::admin
