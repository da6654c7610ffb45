#include "admin/admin_routes.h"

#include <map>
#include <optional>

#include "base/json_writer.h"
#include "config/roles.h"

namespace weir::admin {
namespace {

/// What one caller may do; checks each operation once.
class Rights {
 public:
  Rights(const AdminGuard& guard, const http::Request& request)
      : guard_(guard), request_(request) {}

  bool MayDo(access::Operation operation) {
    std::optional<bool>& known = known_[operation];
    if (!known) known = guard_.AlsoAdmits(request_, operation);
    return *known;
  }

 private:
  const AdminGuard& guard_;
  const http::Request& request_;
  std::map<access::Operation, std::optional<bool>> known_;
};

http::Response Routes(const http::Router& router, Rights rights) {
  http::Response response;
  JsonWriter json(response.body);
  json.BeginObject().Key("routes").BeginArray();
  for (const auto& [method, path] : router.routes()) json.Value(method + " " + path);
  json.EndArray().Key("roles").BeginObject();
  for (const auto& [method, path] : router.routes()) {
    json.AnyKey(method + " " + path).Value(access::RoleNeeded(access::OperationOf(method, path)));
  }
  json.EndObject().Key("allowed").BeginArray();
  for (const auto& [method, path] : router.routes()) {
    if (rights.MayDo(access::OperationOf(method, path))) json.Value(method + " " + path);
  }
  json.EndArray().EndObject();
  return response;
}

}  // namespace

void AddAdminRoutes(http::Router& router, const AdminGuard& guard) {
  router.Add(
      "GET", "/admin/routes",
      Guarded(guard, [&router, &guard](const http::Request& request, const http::Reply& reply) {
        reply(Routes(router, Rights(guard, request)));
      }));
}

}  // namespace weir::admin
