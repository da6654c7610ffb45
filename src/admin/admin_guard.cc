#include "admin/admin_guard.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "protocol/http/error.h"

namespace weir::admin {
namespace {

std::string_view BearerToken(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  if (authorization.size() < kScheme.size() ||
      !EqualsIgnoringCase(authorization.substr(0, kScheme.size()), kScheme)) {
    return {};
  }
  return Trim(authorization.substr(kScheme.size()));
}

/// "http://host:port" → "host:port".
std::string_view HostOfOrigin(std::string_view origin) {
  const std::size_t end = origin.find("://");
  return end == std::string_view::npos ? std::string_view() : origin.substr(end + 3);
}

/// "localhost:8080" → "localhost", "[::1]:8080" → "::1".
std::string_view NameOfHost(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

/// A page of another site in a browser on this machine can reach a loopback address: by a form,
/// by a fetch without preflight, or by a name of its own that it points to 127.0.0.1 (DNS
/// rebinding: then Origin and Host agree, but Host is that name). Browsers reveal all of them.
bool IsFromAnotherSite(const http::Request& request) {
  const std::string_view origin = request.Find("Origin");
  if (!origin.empty() && HostOfOrigin(origin) != request.Find("Host")) return true;
  const std::string_view site = request.Find("Sec-Fetch-Site");
  return !site.empty() && site != "same-origin" && site != "none";
}

/// Browsers always send a Host, so a client without one is not a browser.
bool NamesLoopback(std::string_view host) {
  if (host.empty()) return true;
  const std::string_view name = NameOfHost(host);
  return EqualsIgnoringCase(name, "localhost") || IsLoopback(name);
}

/// The content types that a page may send to other sites without a preflight. Only a body has one;
/// curl's default, a form, passes if no browser sent it.
bool IsBrowserForm(const http::Request& request) {
  std::string_view type = request.Find("Content-Type");
  type = Trim(type.substr(0, type.find(';')));
  if (EqualsIgnoringCase(type, "text/plain") || EqualsIgnoringCase(type, "multipart/form-data")) {
    return true;
  }
  const bool browser = !request.Find("Origin").empty() || !request.Find("Referer").empty() ||
                       !request.Find("Sec-Fetch-Site").empty();
  return browser && EqualsIgnoringCase(type, "application/x-www-form-urlencoded");
}

/// Looks for what proxies add to requests that they forward. nginx adds nothing by default, but
/// uses HTTP/1.0 for its upstreams.
bool ComesThroughAProxy(const http::Request& request) {
  constexpr std::string_view kSigns[] = {"Forwarded",
                                         "Via",
                                         "X-Real-IP",
                                         "X-Client-IP",
                                         "CF-Connecting-IP",
                                         "True-Client-IP",
                                         "CF-Ray",
                                         "Fastly-Client-IP",
                                         "X-Original-URI",
                                         "X-Original-URL",
                                         "X-Envoy-External-Address",
                                         "X-Cluster-Client-IP",
                                         "X-ProxyUser-Ip"};
  if (request.http_1_0) return true;
  for (const http::Header& header : request.headers) {
    constexpr std::string_view kForwarded = "X-Forwarded";
    if (header.name.size() >= kForwarded.size() &&
        EqualsIgnoringCase(header.name.substr(0, kForwarded.size()), kForwarded)) {
      return true;
    }
    for (const std::string_view sign : kSigns) {
      if (EqualsIgnoringCase(header.name, sign)) return true;
    }
  }
  return false;
}

bool ChangesNothing(std::string_view method) { return method == "GET" || method == "HEAD"; }

}  // namespace

std::string_view ApiKeyOf(const http::Request& request) {
  if (const std::string_view own = request.Find("X-Weir-Key"); !own.empty()) return own;
  const std::string_view key = request.Find("X-API-Key");
  return key.empty() ? BearerToken(request.Find("Authorization")) : key;
}

bool IsLoopback(std::string_view address) {
  static const IpNetwork v4 = *IpNetwork::Parse("127.0.0.0/8");
  static const IpNetwork v6 = *IpNetwork::Parse("::1/128");
  const auto parsed = IpAddress::Parse(address);
  return parsed && (v4.Contains(*parsed) || v6.Contains(*parsed));
}

bool AdminGuard::MayCome(std::string_view address) const {
  if (allow_.empty()) return has_keys() || (keyless_ && IsLoopback(address));
  const auto parsed = IpAddress::Parse(address);
  return parsed && ContainsAddress(allow_, *parsed);
}

bool AdminGuard::Admits(std::string_view address, std::string_view key,
                        std::string_view subject) const {
  if (!MayCome(address)) return false;
  if (!has_keys()) return keyless_;
  return gate_
      ->Admit({.address = address, .key = key, .subject = subject, .door = "resp", .quiet = true},
              access::Operation::kOperate)
      .admitted();
}

bool AdminGuard::AlsoAdmits(const http::Request& request, access::Operation operation) const {
  if (operation == access::Operation::kPublic) return true;
  return gate_
      ->Admit({.address = request.remote,
               .key = ApiKeyOf(request),
               .subject = request.subject,
               .door = "http",
               .quiet = true},
              operation)
      .admitted();
}

std::optional<http::Response> AdminGuard::Refuse(const http::Request& request) const {
  if (!MayCome(request.remote)) {
    return http::ErrorResponse(403, "this address may not use the admin API (admin.allow)");
  }
  if (IsFromAnotherSite(request)) {
    return http::ErrorResponse(403, "cross-site requests are refused");
  }
  if (!ChangesNothing(request.method) && IsBrowserForm(request)) {
    return http::ErrorResponse(415, "Content-Type: must be application/json");
  }
  if (!has_keys()) return RefuseKeyless(request);
  // Nothing behind this guard is public, whatever its path looks like.
  const access::Operation operation =
      std::max(access::OperationOf(request.method, request.path), access::Operation::kRead);
  const access::Admission admission =
      gate_->Admit({request.remote, ApiKeyOf(request), request.subject, "http"}, operation);
  if (!admission.admitted()) return RefusalOf(admission, operation);
  request.caller = admission.Holder();
  return std::nullopt;
}

std::optional<http::Response> AdminGuard::RefusePage(const http::Request& request,
                                                     std::string_view remote,
                                                     bool private_to_machine) const {
  if (!ChangesNothing(request.method) && IsFromAnotherSite(request)) {
    return http::ErrorResponse(403, "requests from pages of other sites are refused");
  }
  const bool open_to_machine = !has_keys() && keyless_ && IsLoopback(remote);
  if (!private_to_machine || !open_to_machine || NamesLoopback(request.Find("Host"))) {
    return std::nullopt;
  }
  return http::ErrorResponse(403,
                             "Host: without keys, callers on this machine must use localhost, "
                             "127.0.0.1 or [::1]; or set access.keys and send one of them");
}

std::optional<http::Response> AdminGuard::RefuseKeyless(const http::Request& request) const {
  if (!keyless_) {
    return http::ErrorResponse(403, "admin.keyless is off: set admin.keys and send one of them");
  }
  if (!NamesLoopback(request.Find("Host"))) {
    return http::ErrorResponse(
        403, "Host: without admin.keys the admin API accepts only localhost, 127.0.0.1 and [::1]");
  }
  if (!ComesThroughAProxy(request)) return std::nullopt;
  return http::ErrorResponse(403,
                             "without admin.keys the admin API does not accept requests through a "
                             "proxy; set admin.keys and send one of them");
}

http::Response RefusalOf(const access::Admission& admission, access::Operation operation) {
  using Verdict = access::Admission::Verdict;
  const std::string message = access::Explain(admission, operation);
  if (admission.verdict == Verdict::kRoleMissing) return http::ErrorResponse(403, message);
  if (admission.verdict == Verdict::kSlowedDown) {
    http::Response response = http::ErrorResponse(429, message);
    response.headers.emplace_back("Retry-After", std::to_string(admission.retry_after.count()));
    return response;
  }
  http::Response response = http::ErrorResponse(401, message);
  response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"weir\"");
  return response;
}

http::Handler Guarded(const AdminGuard& guard, http::Handler handler) {
  return [&guard, handler = std::move(handler)](const http::Request& request, http::Reply reply) {
    if (auto refusal = guard.Refuse(request)) return reply(std::move(*refusal));
    handler(request, std::move(reply));
  };
}

}  // namespace weir::admin
