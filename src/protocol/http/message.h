#pragma once

// An HTTP request and response as handlers see them: no socket, no parser.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"

namespace weir::http {

struct Header {
  std::string_view name;
  std::string_view value;
};

/// Views into the connection's buffer, valid until the reply is sent.
struct Request {
  std::string_view method;
  std::string_view path;   ///< still percent-encoded, without the query
  std::string_view query;  ///< without '?'
  std::vector<Header> headers;
  std::string_view body;
  std::string_view remote;      ///< the peer's address without port
  std::string_view request_id;  ///< X-Request-Id, or generated here
  bool keep_alive = true;
  bool secure = false;
  bool http_1_0 = false;
  std::string_view subject = {};  ///< the common name in the client's certificate; empty: none
  /// Who the caller is, if a guard found out by a token or certificate: "token alice". Guards see
  /// requests that are const to handlers.
  mutable std::string caller = {};
  /// The route is open to everyone, so a key that was sent has not been checked.
  mutable bool key_unchecked = false;
  /// Filled by the router for patterns like /admin/policies/{key}: decoded path parameters in
  /// order.
  std::vector<std::string> params;

  /// The first header of this name, ignoring case; empty if there is none.
  std::string_view Find(std::string_view name) const noexcept {
    for (const Header& header : headers) {
      if (EqualsIgnoringCase(header.name, name)) return header.value;
    }
    return {};
  }
};

struct Response {
  int status = 200;
  std::string_view content_type = "application/json";  ///< a literal
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  bool unchanged = false;  ///< a success that changed nothing, so there is nothing to record

  static Response Json(std::string body, int status = 200) {
    Response response;
    response.status = status;
    response.body = std::move(body);
    return response;
  }
  static Response NoContent() { return Json({}, 204); }
};

/// Sends the answer, once, from any thread.
using Reply = std::function<void(Response)>;

/// Called on the connection's reactor. May keep `reply` and answer later; `request` is valid until
/// then.
using Handler = std::function<void(const Request& request, Reply reply)>;

}  // namespace weir::http
