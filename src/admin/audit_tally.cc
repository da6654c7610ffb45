#include "admin/audit_tally.h"

#include "base/json_writer.h"
#include "telemetry/log.h"

namespace weir::admin {

void AuditTally::Note(std::string who, std::string_view action, std::string_view target,
                      std::size_t count) {
  constexpr std::size_t kMaxTarget = 256;
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  if (noted_.size() >= kCallers) who = "others";
  Noted& noted = noted_[{std::move(who), std::string(action)}];
  if (noted.count == 0) noted.target = target.substr(0, kMaxTarget);
  noted.count += count;
}

void AuditTally::Flush() {
  decltype(noted_) taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(noted_);
  }
  for (const auto& [key, noted] : taken) {
    policy::AuditEntry entry{.who = key.first, .action = key.second, .target = noted.target};
    JsonWriter(entry.after).BeginObject().Field("count", noted.count).EndObject();
    audit_.Append(std::move(entry), [](const Result<std::int64_t>& written) {
      if (written.ok()) return;
      telemetry::Log(telemetry::Level::kError, "cannot write to the audit log",
                     {{"error", std::string_view(written.error().message)}});
    });
  }
}

}  // namespace weir::admin
