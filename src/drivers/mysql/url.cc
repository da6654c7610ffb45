#include "drivers/mysql/url.h"

#include <utility>

#include "base/url.h"

namespace weir::mysql {
namespace {

Error Wrong(const std::string& what) {
  return {Code::kInvalidArgument,
          "mysql:// URL: " + what + "; expected mysql://user:password@host:port/database"};
}

bool SetTls(Target& target, std::string_view value) {
  if (value == "off") {
    target.tls = Tls::kOff;
  } else if (value == "required") {
    target.tls = Tls::kVerified;
  } else if (value == "insecure-no-verify") {
    target.tls = Tls::kUnverified;
  } else {
    return false;
  }
  return true;
}

Status SetOption(Target& target, bool& tls_given, std::string_view name, std::string value) {
  bool good = true;
  if (name == "socket") {
    target.socket = std::move(value);
  } else if (name == "tls") {
    good = SetTls(target, value);
    tls_given = true;
  } else if (name == "tls_ca" || name == "tls_cert" || name == "tls_key") {
    std::string& file = name == "tls_ca"     ? target.tls_ca
                        : name == "tls_cert" ? target.tls_cert
                                             : target.tls_key;
    good = !value.empty();
    file = std::move(value);
    if (!tls_given) target.tls = Tls::kVerified;
  } else {
    return Wrong("unknown option '" + std::string(name) +
                 "' (socket, tls, tls_ca, tls_cert, tls_key)");
  }
  if (good) return {};
  const bool is_tls = name == "tls";
  return Wrong("invalid value of option '" + std::string(name) + "'" +
               (is_tls ? " (off, required, insecure-no-verify)" : ""));
}

Status SetPlaces(Target& target, std::vector<UrlHost> hosts) {
  if (hosts.empty() && target.socket.empty()) return Wrong("the host is missing");
  if (!hosts.empty() && !target.socket.empty()) return Wrong("give a host or a socket, not both");
  for (UrlHost& host : hosts) {
    Endpoint& endpoint = target.endpoints.emplace_back();
    endpoint.host = std::move(host.name);
    if (host.port != 0) endpoint.port = host.port;
  }
  return {};
}

Status CheckTls(const Target& target) {
  if (target.tls != Tls::kOff && !target.socket.empty()) {
    return Wrong("a unix socket cannot use TLS; remove the tls options");
  }
  if (target.tls_cert.empty() != target.tls_key.empty()) {
    return Wrong("tls_cert and tls_key must be given together");
  }
  return {};
}

}  // namespace

Result<Target> ParseUrl(std::string_view text) {
  Result<Url> url = weir::ParseUrl(text);
  if (!url.ok()) return Wrong(url.error().message);
  if (url->scheme != "mysql" && url->scheme != "mariadb") return Wrong("unsupported URL scheme");
  Target target;
  bool tls_given = false;
  for (auto& [name, value] : url->options) {
    Status set = SetOption(target, tls_given, name, std::move(value));
    if (!set.ok()) return set.error();
  }
  target.user = std::move(url->user);
  target.password = std::move(url->password);
  target.database = std::move(url->path);
  if (Status set = SetPlaces(target, std::move(url->hosts)); !set.ok()) return set.error();
  if (Status good = CheckTls(target); !good.ok()) return good.error();
  if (target.database.empty()) return Wrong("the database is missing");
  return target;
}

}  // namespace weir::mysql
