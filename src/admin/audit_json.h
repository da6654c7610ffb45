#pragma once

#include <string>

#include "admin/audit_log.h"
#include "base/json_writer.h"
#include "protocol/http/message.h"

namespace weir::admin {

using policy::AuditEntry;
using policy::AuditLog;

/// Who makes a request: the first 8 hexadecimal digits of the SHA-256 of the API key, and the
/// address: "key 1a2b3c4d from 127.0.0.1", or "127.0.0.1" without a key. If a guard has admitted a
/// token or certificate: "token alice from 127.0.0.1".
std::string WhoAsks(const http::Request& request);
std::string WhoAsks(std::string_view key, std::string_view address);

/// {"id":1,"at":"2026-…","who":…,"action":…,"target":…,"before":{…}|null,"after":{…}|null}
void AppendJson(JsonWriter& json, const AuditEntry& entry);

}  // namespace weir::admin
