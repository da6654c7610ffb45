#include "admin/admin_routes.h"

#include <array>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "config/roles.h"
#include "protocol/http/error.h"

namespace weir::admin {
namespace {

/// Those that connections answer without the router (http_exchange.cc).
constexpr std::array<std::string_view, 7> kChecks = {
    "POST /v1/check",   "POST /v1/peek",   "POST /v1/refund", "POST /v1/release",
    "POST /v1/reserve", "POST /v1/settle", "GET /v1/auth"};

/// "POST /v1/check":"check"
void AppendRole(JsonWriter& json, std::string_view route) {
  const std::size_t space = route.find(' ');
  json.AnyKey(route).Value(
      access::RoleNeeded(access::OperationOf(route.substr(0, space), route.substr(space + 1))));
}

http::Response Routes(const http::Router& router) {
  http::Response response;
  JsonWriter json(response.body);
  json.BeginObject().Key("routes").BeginArray();
  for (const std::string_view check : kChecks) json.Value(check);
  for (const auto& [method, path] : router.routes()) json.Value(method + " " + path);
  json.EndArray().Key("roles").BeginObject();
  for (const std::string_view check : kChecks) AppendRole(json, check);
  for (const auto& [method, path] : router.routes()) AppendRole(json, method + " " + path);
  json.EndObject().EndObject();
  return response;
}

}  // namespace

void AddAdminRoutes(http::Router& router, const AdminGuard& guard) {
  router.Add("GET", "/admin/routes",
             Guarded(guard, [&router](const http::Request&, const http::Reply& reply) {
               reply(Routes(router));
             }));
}

}  // namespace weir::admin
