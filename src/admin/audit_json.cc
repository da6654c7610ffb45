#include "admin/audit_json.h"

#include <string_view>

#include "admin/admin_guard.h"
#include "base/hex.h"
#include "base/instant.h"
#include "base/json_writer.h"
#include "config/config.h"

namespace weir::admin {

std::string WhoAsks(const http::Request& request) {
  if (!request.caller.empty()) return request.caller + " from " + std::string(request.remote);
  return WhoAsks(request.key_unchecked ? std::string_view() : ApiKeyOf(request), request.remote);
}

std::string WhoAsks(std::string_view key, std::string_view address) {
  constexpr std::size_t kBytes = 4;
  if (key.empty()) return std::string(address);
  const config::Digest digest = config::Sha256(key);
  std::string who = "key ";
  for (std::size_t i = 0; i < kBytes; ++i) AppendHex(who, digest[i]);
  return who.append(" from ").append(address);
}

void AppendJson(JsonWriter& json, const AuditEntry& entry) {
  json.BeginObject()
      .Field("id", entry.id)
      .Field("at", FormatInstant(entry.at))
      .Field("who", entry.who)
      .Field("action", entry.action)
      .Field("target", entry.target)
      .RawField("before", entry.before.empty() ? "null" : entry.before)
      .RawField("after", entry.after.empty() ? "null" : entry.after);
  if (entry.undoes != 0) json.Field("undoes", entry.undoes);
  json.EndObject();
}

}  // namespace weir::admin
