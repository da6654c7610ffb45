#include "admin/admin_routes.h"

#include <array>
#include <string>
#include <string_view>

#include "base/json_text.h"
#include "config/roles.h"
#include "protocol/http/error.h"

namespace weir::admin {
namespace {

/// Those that connections answer without the router (http_exchange.cc).
constexpr std::array<std::string_view, 7> kChecks = {
    "POST /v1/check",   "POST /v1/peek",   "POST /v1/refund", "POST /v1/release",
    "POST /v1/reserve", "POST /v1/settle", "GET /v1/auth"};

/// "POST /v1/check":"check", with a comma behind it.
void AppendRole(std::string& out, std::string_view route) {
  const std::size_t space = route.find(' ');
  AppendJsonString(out, route);
  out += ':';
  AppendJsonString(out, access::RoleNeeded(
                            access::OperationOf(route.substr(0, space), route.substr(space + 1))));
  out += ',';
}

http::Response Routes(const http::Router& router) {
  http::Response response;
  response.body = "{\"routes\":[";
  for (const std::string_view check : kChecks) {
    AppendJsonString(response.body, check);
    response.body += ',';
  }
  const auto& routes = router.routes();
  for (std::size_t i = 0; i < routes.size(); ++i) {
    if (i != 0) response.body += ',';
    AppendJsonString(response.body, routes[i].first + " " + routes[i].second);
  }
  response.body += "],\"roles\":{";
  for (const std::string_view check : kChecks) AppendRole(response.body, check);
  for (const auto& [method, path] : routes) AppendRole(response.body, method + " " + path);
  response.body.back() = '}';
  response.body += '}';
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
