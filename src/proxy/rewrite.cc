#include "proxy/rewrite.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/http_status.h"
#include "base/number.h"
#include "filter/field_names.h"
#include "filter/headers.h"

namespace weir::proxy {

namespace {

constexpr std::string_view kTraceParent = "traceparent";
constexpr std::string_view kVia = "Via: 1.1 weir\r\n";

/// Fields for one hop only; the ones that frame the body are written again.
bool ForThisHop(http::FieldId id) noexcept {
  switch (id) {
    case http::FieldId::kConnection:
    case http::FieldId::kContentLength:
    case http::FieldId::kKeepAlive:
    case http::FieldId::kProxyAuthorization:
    case http::FieldId::kProxyConnection:
    case http::FieldId::kTe:
    case http::FieldId::kTransferEncoding:
    case http::FieldId::kUpgrade:
      return true;
    default:
      return false;
  }
}

/// Never removed, even if a Connection field names them: the message would change its
/// meaning.
bool Essential(http::FieldId id) noexcept {
  return id == http::FieldId::kHost || id == http::FieldId::kExpect;
}

bool Removed(const http::Head& head, const http::Field& field) noexcept {
  if (ForThisHop(field.id)) return true;
  return head.nominates && !Essential(field.id) && head.Nominates(field.name);
}

void WriteFraming(const http::Head& head, std::string& out) {
  if (head.chunked) out += "Transfer-Encoding: chunked\r\n";
  if (head.has_length) {
    out += "Content-Length: ";
    AppendNumber(out, head.length);
    out += "\r\n";
  }
}

void WriteUpgrade(const http::Head& head, std::string& out) {
  for (const http::Field& field : head.fields) {
    if (field.id == http::FieldId::kUpgrade) out += field.line;
  }
  out += "Connection: upgrade\r\n";
}

/// Appends the lines that `peer` adds to a chain of proxies.
void WriteForwarded(const http::RequestHead& head, const Sender& sender, std::string& out) {
  out += "X-Forwarded-For: ";
  const http::Field* proto = nullptr;
  const http::Field* host = nullptr;
  if (sender.trusted) {
    for (const http::Field& field : head.fields) {
      if (field.id == http::FieldId::kForwardedFor) out.append(field.value).append(", ");
    }
    proto = head.Find(http::FieldId::kForwardedProto);
    host = head.Find(http::FieldId::kForwardedHost);
  }
  out.append(sender.peer).append("\r\n");
  if (host != nullptr) {
    out += host->line;
  } else if (!head.authority.empty()) {
    out.append("X-Forwarded-Host: ").append(head.authority).append("\r\n");
  }
  if (proto != nullptr) {
    out += proto->line;
  } else {
    out.append("X-Forwarded-Proto: ").append(sender.secure ? "https\r\n" : "http\r\n");
  }
}

bool Forwarded(http::FieldId id) noexcept {
  return id == http::FieldId::kForwardedFor || id == http::FieldId::kForwardedHost ||
         id == http::FieldId::kForwardedProto;
}

/// Fields that can make an upstream see another client, target or method than the one that was
/// counted, or use another proxy of its own (Proxy, which CGI reads as HTTP_PROXY). Only trusted
/// proxies may send them.
constexpr std::string_view kMisleading[] = {
    "CF-Connecting-IP",
    "CF-Connecting-IPv6",
    "Client-IP",
    "Fastly-Client-IP",
    "Forwarded",
    "Forwarded-For",
    "Proxy",
    "True-Client-IP",
    "X-Azure-ClientIP",
    "X-Azure-SocketIP",
    "X-Client-IP",
    "X-Cluster-Client-IP",
    "X-Forwarded",
    "X-HTTP-Method",
    "X-HTTP-Method-Override",
    "X-Host",
    "X-Method-Override",
    "X-Originating-IP",
    "X-Override-URL",
    "X-ProxyUser-IP",
    "X-Real-IP",
    "X-Remote-Addr",
    "X-Remote-IP",
    "X-Rewrite-URL",
};
/// Families of such fields: there are too many to list.
constexpr std::string_view kMisleadingPrefixes[] = {"X-Envoy-", "X-Forwarded-", "X-Original-"};

bool Misleads(const http::Field& field) noexcept {
  if (field.id != http::FieldId::kOther) return false;
  const auto reads_as = [&](std::string_view name) {
    return filter::ReadsAsField(field.name, name);
  };
  const auto begins_as = [&](std::string_view prefix) {
    return filter::ReadsAsField(field.name.substr(0, prefix.size()), prefix);
  };
  return std::any_of(std::begin(kMisleading), std::end(kMisleading), reads_as) ||
         std::any_of(std::begin(kMisleadingPrefixes), std::end(kMisleadingPrefixes), begins_as);
}

void WriteEnding(Ending ending, std::string& out) {
  if (ending.close) {
    out += "Connection: close\r\n";
  } else if (ending.http10) {
    out += "Connection: keep-alive\r\n";
  }
}

}  // namespace

std::string OfferedUpgrades(const http::Head& head, std::span<const std::string> allowed) {
  std::string offered;
  if (!head.upgrade) return offered;
  for (const std::string& protocol : allowed) {
    for (const http::Field& field : head.fields) {
      if (field.id != http::FieldId::kUpgrade || !http::ListHas(field.value, protocol)) continue;
      offered.append(offered.empty() ? "" : ", ").append(protocol);
      break;
    }
  }
  return offered;
}

bool ChoosesUpgrade(const http::Head& head, std::string_view offered) {
  bool chosen = head.upgrade;
  for (const http::Field& field : head.fields) {
    if (field.id != http::FieldId::kUpgrade) continue;
    http::ForEachElement(field.value, [&](std::string_view protocol) {
      chosen = chosen && http::ListHas(offered, protocol);
    });
  }
  return chosen;
}

void WriteRequestHead(const http::RequestHead& head, const Sender& sender, std::string& out) {
  out.clear();
  out.append(head.method).append(" ").append(head.target);
  out += head.minor_version == 1 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n";
  // HTTP/1.1 requires a Host field; it is empty where there is no authority.
  if (!head.authority.empty() || head.minor_version == 1) {
    out.append("Host: ").append(head.authority).append("\r\n");
  }
  for (const http::Field& field : head.fields) {
    if (field.id == http::FieldId::kHost || Forwarded(field.id) || Removed(head, field)) continue;
    if (!sender.trusted && Misleads(field)) continue;
    if (!sender.traceparent.empty() && EqualsIgnoringCase(field.name, kTraceParent)) continue;
    out += field.line;
  }
  if (!sender.traceparent.empty()) {
    out.append(kTraceParent).append(": ").append(sender.traceparent).append("\r\n");
  }
  WriteForwarded(head, sender, out);
  out += kVia;
  WriteFraming(head, out);
  if (!sender.upgrade.empty()) {
    out.append("Upgrade: ").append(sender.upgrade).append("\r\nConnection: upgrade\r\n");
  } else if (head.minor_version == 0) {
    out += "Connection: close\r\n";
  }
  out += "\r\n";
}

void WriteResponseHead(const http::ResponseHead& head, std::string_view extra, Ending ending,
                       std::string& out) {
  out.append("HTTP/1.1 ").append(head.status_line).append("\r\n");
  for (const http::Field& field : head.fields) {
    if (!Removed(head, field)) out += field.line;
  }
  out += kVia;
  // Interim responses and 204 have no body, whatever they say: a client that believes a length
  // there would take the next response for a body.
  if (head.status >= 200 && head.status != 204) WriteFraming(head, out);
  out += extra;
  if (head.status == 101) {
    WriteUpgrade(head, out);
  } else {
    WriteEnding(ending, out);
  }
  out += "\r\n";
}

void WriteOwnResponse(const OwnResponse& response, Ending ending, std::string& out) {
  out += "HTTP/1.1 ";
  AppendNumber(out, static_cast<std::uint64_t>(response.status));
  out.append(" ").append(ReasonPhrase(response.status)).append("\r\n");
  out.append("Content-Type: ").append(response.content_type).append("\r\nContent-Length: ");
  AppendNumber(out, response.body.size());
  out += "\r\n";
  out += response.extra;
  WriteEnding(ending, out);
  out += "\r\n";
  if (!response.head_only) out += response.body;
}

}  // namespace weir::proxy
