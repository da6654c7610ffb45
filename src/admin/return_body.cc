#include "admin/return_body.h"

#include <simdjson.h>

#include <array>
#include <string>
#include <string_view>

#include "admin/policy_body.h"
#include "base/nearest.h"
#include "protocol/http/check_json.h"

namespace weir::admin {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kMaxNameBytes = 64;

Error Bad(std::string_view field, std::string_view what) {
  return Error{Code::kInvalidArgument, std::string(field).append(": ").append(what)};
}

Status ReadEndField(dom::element value, PolicyChanges::End& end) {
  if (value.is_null()) {
    end = 0;
    return {};
  }
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) text = {};
  const Result<Nanos> instant = http::ReadEndTime(text);
  if (!instant.ok()) return instant.error();
  end = *instant;
  return {};
}

Status ReadVersionField(dom::element value, std::int64_t& version) {
  if (value.get(version) == simdjson::SUCCESS && version >= 1) return {};
  return Bad("version", "must be a whole number from 1, not " + simdjson::minify(value));
}

Status ReadField(const dom::key_value_pair& field, bool takes_version, Rollback& wanted) {
  if (takes_version && field.key == "version") {
    if (wanted.version != 0) return Bad("version", "is given twice");
    return ReadVersionField(field.value, wanted.version);
  }
  if (field.key == "expiresAt" || field.key == "expires_at") {
    if (wanted.end) return Bad("expiresAt", "is given twice");
    return ReadEndField(field.value, wanted.end);
  }
  static constexpr std::array<std::string_view, 2> kFields{"version", "expiresAt"};
  return Bad(field.key.substr(0, kMaxNameBytes),
             takes_version ? NotAField(field.key, "a rollback", kFields)
                           : "is not a field of an undo; the only field is expiresAt");
}

Result<Rollback> Read(std::string_view body, bool takes_version) {
  dom::parser parser;
  dom::element document;
  dom::object object;
  if (parser.parse(body.data(), body.size()).get(document) != simdjson::SUCCESS) {
    return http::Located(http::BadJson(), body);
  }
  if (document.get(object) != simdjson::SUCCESS) {
    return Error{Code::kInvalidArgument, "the body must be a JSON object"};
  }
  Rollback wanted;
  for (const dom::key_value_pair field : object) {
    if (Status read = ReadField(field, takes_version, wanted); !read.ok()) return read.error();
  }
  return wanted;
}

}  // namespace

Result<PolicyChanges::End> ReadEnd(std::string_view body) {
  if (body.empty()) return PolicyChanges::End();
  const Result<Rollback> read = Read(body, /*takes_version=*/false);
  if (!read.ok()) return read.error();
  return read->end;
}

Result<Rollback> ReadRollback(std::string_view body) {
  Result<Rollback> read = Read(body, /*takes_version=*/true);
  if (read.ok() && read->version == 0) return Bad("version", "must be a whole number from 1");
  return read;
}

}  // namespace weir::admin
