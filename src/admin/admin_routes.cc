#include "admin/admin_routes.h"

#include "base/json_writer.h"
#include "config/roles.h"

namespace weir::admin {
namespace {

http::Response Routes(const http::Router& router) {
  http::Response response;
  JsonWriter json(response.body);
  json.BeginObject().Key("routes").BeginArray();
  for (const auto& [method, path] : router.routes()) json.Value(method + " " + path);
  json.EndArray().Key("roles").BeginObject();
  for (const auto& [method, path] : router.routes()) {
    json.AnyKey(method + " " + path).Value(access::RoleNeeded(access::OperationOf(method, path)));
  }
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
