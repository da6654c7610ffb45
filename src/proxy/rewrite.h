#pragma once

// What a proxy changes in the heads that pass through it, and the answers it gives itself.

#include <span>
#include <string>
#include <string_view>

#include "protocol/http/head.h"
#include "weir/clock.h"

namespace weir::proxy {

/// Who sent a request, as forwarded to the upstream.
struct Sender {
  std::string_view peer;  ///< the address of the connection's other end
  bool trusted = false;   ///< its X-Forwarded-… fields are kept; others' are replaced
  /// The protocols offered to the upstream; empty: none, whatever the client asked for.
  std::string_view upgrade = {};
  bool secure = false;  ///< it came over TLS
  /// Replaces the client's own `traceparent`; empty: the client's is passed on.
  std::string_view traceparent = {};
};

/// Those of `allowed` that the head's Upgrade fields name, as a list for an Upgrade field; empty if
/// the head asks for no upgrade.
std::string OfferedUpgrades(const http::Head& head, std::span<const std::string> allowed);
/// Whether the head names one of the protocols in `offered`, such a list, and no other.
bool ChoosesUpgrade(const http::Head& head, std::string_view offered);

/// Writes the head for the upstream: without hop-by-hop fields, with X-Forwarded-For,
/// -Host, -Proto and Via. An HTTP/1.0 request stays one, so that the response fits the client.
void WriteRequestHead(const http::RequestHead& head, const Sender& sender, std::string& out);

/// How the client's connection continues after a response.
struct Ending {
  bool close = false;
  bool http10 = false;  ///< the client speaks HTTP/1.0 and needs `keep-alive`
};

/// Writes the head for the client: without the hop-by-hop fields of the upstream, with `extra`
/// (whole lines) and Via.
void WriteResponseHead(const http::ResponseHead& head, std::string_view extra, Ending ending,
                       std::string& out);

/// A complete response made by the proxy itself.
struct OwnResponse {
  int status = 200;
  std::string_view content_type = {};
  std::string_view extra = {};  ///< whole lines
  std::string_view body = {};
  bool head_only = false;  ///< the answer to HEAD: the length of the body, not the body
};
void WriteOwnResponse(const OwnResponse& response, Ending ending, std::string& out);

}  // namespace weir::proxy
