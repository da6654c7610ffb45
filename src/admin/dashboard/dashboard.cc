#include "admin/dashboard/dashboard.h"

#include <string_view>

#include "admin/dashboard/asset.h"
#include "protocol/http/response_writer.h"

namespace weir::admin {
namespace {

/// Scripts and styles of this origin only, none inline, requests to this origin only, no framing by
/// other pages. The pages use no inline styles and load no images from elsewhere.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

http::Response Serve(const Asset& asset, const http::Request& request) {
  http::Response response;
  const auto add = [&response](std::string_view name, std::string_view value) {
    response.headers.emplace_back(name, value);
  };
  add("ETag", asset.etag);
  add(http::kCacheControl, "no-cache");
  add("Content-Security-Policy", kPolicy);
  add("X-Content-Type-Options", "nosniff");
  add("Referrer-Policy", "no-referrer");
  add("X-Frame-Options", "DENY");
  add("Cross-Origin-Opener-Policy", "same-origin");
  add("Cross-Origin-Resource-Policy", "same-origin");
  if (request.Find("If-None-Match") == asset.etag) {
    response.status = 304;
    return response;
  }
  response.content_type = asset.content_type;
  response.body = asset.body;
  return response;
}

}  // namespace

void AddDashboard(http::Router& router) {
  for (const Asset& asset : DashboardAssets()) {
    router.Add("GET", asset.path, [&asset](const http::Request& request, const http::Reply& reply) {
      reply(Serve(asset, request));
    });
  }
}

}  // namespace weir::admin
