#include "drivers/mysql/url.h"

#include <charconv>
#include <optional>

#include "base/percent.h"

namespace weir::mysql {
namespace {

Error Wrong(const std::string& what) {
  return {Code::kInvalidArgument,
          "mysql:// URL: " + what + "; expected mysql://user:password@host:port/database"};
}

// What stands before `end` in `rest`, which then begins after it; all of it if there is no `end`.
std::string_view Cut(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  const std::string_view part = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return part;
}

bool Assign(std::string& field, std::string_view text) {
  std::optional<std::string> decoded = PercentDecoded(text);
  // A zero would end a C string.
  if (!decoded || decoded->find('\0') != std::string::npos) return false;
  field = std::move(*decoded);
  return true;
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

Status SetOption(Target& target, bool& tls_given, std::string_view name, std::string_view value) {
  bool good = true;
  if (name == "socket") {
    good = Assign(target.socket, value);
  } else if (name == "tls") {
    good = SetTls(target, value);
    tls_given = true;
  } else if (name == "tls_ca" || name == "tls_cert" || name == "tls_key") {
    std::string& file = name == "tls_ca"     ? target.tls_ca
                        : name == "tls_cert" ? target.tls_cert
                                             : target.tls_key;
    good = Assign(file, value) && !file.empty();
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

Status AddEndpoint(Target& target, std::string_view place) {
  Endpoint endpoint;
  std::string_view host = place;
  std::string_view port;
  if (place.starts_with('[')) {  // an IPv6 address
    const std::size_t end = place.find(']');
    if (end == std::string_view::npos) return Wrong("the host's ']' is missing");
    host = place.substr(1, end - 1);
    port = place.substr(end + 1);
    if (!port.empty() && port.front() != ':') return Wrong("the port is not a number");
    if (!port.empty()) port.remove_prefix(1);
  } else {
    host = Cut(place, ':');
    port = place;
  }
  if (!Assign(endpoint.host, host)) return Wrong("the host has a bad % escape");
  if (!port.empty()) {
    const auto [end, error] =
        std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
    if (error != std::errc() || end != port.data() + port.size() || endpoint.port == 0) {
      return Wrong("the port is not a number up to 65535");
    }
  }
  if (endpoint.host.empty()) return Wrong("the host is missing");
  target.endpoints.push_back(std::move(endpoint));
  return {};
}

Status SetPlaces(Target& target, std::string_view places) {
  if (places.empty() && !target.socket.empty()) return {};
  if (!target.socket.empty()) return Wrong("a socket goes without a host");
  if (places.ends_with(',')) return Wrong("the host is missing");
  do {
    if (Status added = AddEndpoint(target, Cut(places, ',')); !added.ok()) return added;
  } while (!places.empty());
  return {};
}

Status CheckTls(const Target& target) {
  if (target.tls != Tls::kOff && !target.socket.empty()) {
    return Wrong("a unix socket has no TLS; leave tls out");
  }
  if (target.tls_cert.empty() != target.tls_key.empty()) {
    return Wrong("tls_cert and tls_key go together");
  }
  return {};
}

}  // namespace

Result<Target> ParseUrl(std::string_view url) {
  std::string_view rest = url;
  if (rest.starts_with("mysql://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("mariadb://")) {
    rest.remove_prefix(10);
  } else {
    return Wrong("unsupported URL scheme");
  }
  Target target;
  bool tls_given = false;
  std::string_view before_options = Cut(rest, '?');
  while (!rest.empty()) {
    std::string_view value = Cut(rest, '&');
    const std::string_view name = Cut(value, '=');
    if (Status set = SetOption(target, tls_given, name, value); !set.ok()) return set.error();
  }
  std::string_view authority = Cut(before_options, '/');
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    std::string_view who = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    const std::string_view user = Cut(who, ':');
    if (!Assign(target.user, user) || !Assign(target.password, who)) {
      return Wrong("user or password has a bad % escape");
    }
  }
  if (Status set = SetPlaces(target, authority); !set.ok()) return set.error();
  if (Status good = CheckTls(target); !good.ok()) return good.error();
  if (!Assign(target.database, before_options)) return Wrong("the database has a bad % escape");
  if (target.database.empty()) return Wrong("the database is missing");
  return target;
}

}  // namespace weir::mysql
