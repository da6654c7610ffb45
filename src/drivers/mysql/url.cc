#include "drivers/mysql/url.h"

#include <charconv>
#include <optional>

#include "base/percent.h"

namespace weir::mysql {
namespace {

Error Wrong(const std::string& what) {
  return {Code::kInvalidArgument,
          "mysql:// url: " + what + "; expected mysql://user:password@host:port/database"};
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

Status SetOption(Target& target, std::string_view name, std::string_view value) {
  bool good = true;
  if (name == "socket") {
    good = Assign(target.socket, value);
  } else if (name == "tls_ca") {
    good = Assign(target.tls_ca, value);
    target.tls = true;
  } else if (name == "tls") {
    good = value == "required" || value == "off";
    target.tls = value == "required";
  } else {
    return Wrong("unknown option '" + std::string(name) + "' (socket, tls, tls_ca)");
  }
  if (!good) return Wrong("option '" + std::string(name) + "' has no such value");
  return {};
}

Status SetPlace(Target& target, std::string_view place) {
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
  if (!Assign(target.host, host)) return Wrong("the host has a bad % escape");
  if (port.empty()) return {};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), target.port);
  if (error != std::errc() || end != port.data() + port.size() || target.port == 0) {
    return Wrong("the port is not a number up to 65535");
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
  std::string_view before_options = Cut(rest, '?');
  while (!rest.empty()) {
    std::string_view value = Cut(rest, '&');
    const std::string_view name = Cut(value, '=');
    if (Status set = SetOption(target, name, value); !set.ok()) return set.error();
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
  if (Status set = SetPlace(target, authority); !set.ok()) return set.error();
  if (!Assign(target.database, before_options)) return Wrong("the database has a bad % escape");
  if (target.database.empty()) return Wrong("the database is missing");
  if (target.host.empty() && target.socket.empty()) return Wrong("the host is missing");
  return target;
}

}  // namespace weir::mysql
