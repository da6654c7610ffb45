#include "admin/redis/replies.h"

#include <utility>

#include "admin/redis/records.h"
#include "base/number.h"

namespace weir::policy::redis {

using weir::redis::Reply;

namespace {

std::int64_t NumberIn(const Reply& reply) {
  if (reply.kind != Reply::Kind::kText) return reply.integer;
  return ParseNumber<std::int64_t>(reply.text).value_or(reply.integer);
}

}  // namespace

Error NotUnderstood() {
  return Error{Code::kInternal, "redis: unexpected response about policies"};
}

Result<std::vector<AuditEntry>> EntriesIn(const Reply& list) {
  std::vector<AuditEntry> entries;
  entries.reserve(list.elements.size() / 2);
  for (std::size_t i = 0; i + 1 < list.elements.size(); i += 2) {
    Result<AuditEntry> entry =
        ReadEntryRecord(NumberIn(list.elements[i]), list.elements[i + 1].text);
    if (!entry.ok()) return entry.error();
    entries.push_back(std::move(*entry));
  }
  return entries;
}

}  // namespace weir::policy::redis
