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

}  // namespace weir::http
