#include "admin/audit_json.h"

#include <string_view>

#include "admin/admin_guard.h"
#include "base/instant.h"
#include "base/json_text.h"
#include "config/config.h"
#include "protocol/http/error.h"

namespace weir::admin {
namespace {

void AppendState(std::string& out, std::string_view name, const std::string& json) {
  out.append(",\"").append(name).append("\":").append(json.empty() ? "null" : json);
}

}  // namespace

std::string WhoAsks(const http::Request& request) {
  if (!request.caller.empty()) return request.caller + " from " + std::string(request.remote);
  return WhoAsks(ApiKeyOf(request), request.remote);
}

std::string WhoAsks(std::string_view key, std::string_view address) {
  constexpr char kHex[] = "0123456789abcdef";
  constexpr std::size_t kBytes = 4;
  if (key.empty()) return std::string(address);
  const config::Digest digest = config::Sha256(key);
  std::string who = "key ";
  for (std::size_t i = 0; i < kBytes; ++i) who += {kHex[digest[i] >> 4U], kHex[digest[i] & 15U]};
  return who.append(" from ").append(address);
}

void AppendJson(std::string& out, const AuditEntry& entry) {
  out.append("{\"id\":").append(std::to_string(entry.id));
  out.append(",\"at\":\"").append(FormatInstant(entry.at)).append("\",\"who\":");
  AppendJsonString(out, entry.who);
  out += ",\"action\":";
  AppendJsonString(out, entry.action);
  out += ",\"target\":";
  AppendJsonString(out, entry.target);
  AppendState(out, "before", entry.before);
  AppendState(out, "after", entry.after);
  if (entry.undoes != 0) out.append(",\"undoes\":").append(std::to_string(entry.undoes));
  out += '}';
}

}  // namespace weir::admin
