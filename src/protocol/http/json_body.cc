#include "protocol/http/json_body.h"

#include "base/error.h"

namespace weir::http {
namespace {

constexpr std::size_t kSmall = std::size_t{32} << 10U;

}  // namespace

Result<simdjson::dom::object> JsonBody::Parse(std::string_view body) {
  static thread_local simdjson::dom::parser kept;
  if (body.size() > kSmall) own_ = std::make_unique<simdjson::dom::parser>();
  simdjson::dom::parser& parser = body.size() > kSmall ? *own_ : kept;
  simdjson::dom::object object;
  if (parser.parse(body.data(), body.size()).get(object) != simdjson::SUCCESS) {
    return Invalid("the body must be a JSON object");
  }
  return object;
}

bool HasField(const simdjson::dom::object& object, const char* field) {
  simdjson::dom::element element;
  return object[field].get(element) == simdjson::SUCCESS && !element.is_null();
}

Status ReadText(const simdjson::dom::object& object, const char* field, std::string& into) {
  std::string_view text;
  if (object[field].get(text) != simdjson::SUCCESS) {
    return Invalid(std::string(field) +
                   (HasField(object, field) ? " must be a string" : " is missing"));
  }
  into = text;
  return {};
}

Status ReadNumber(const simdjson::dom::object& object, const char* field, std::int64_t& into) {
  if (object[field].get(into) == simdjson::SUCCESS) return {};
  return Invalid(std::string(field) +
                 (HasField(object, field) ? " must be a whole number" : " is missing"));
}

Status ReadTextIfAny(const simdjson::dom::object& object, const char* field, std::string& into) {
  return HasField(object, field) ? ReadText(object, field, into) : Status();
}

Status ReadNumberIfAny(const simdjson::dom::object& object, const char* field, std::int64_t& into) {
  return HasField(object, field) ? ReadNumber(object, field, into) : Status();
}

}  // namespace weir::http
