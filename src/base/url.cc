#include "base/url.h"

#include <algorithm>
#include <optional>

#include "base/number.h"
#include "base/percent.h"
#include "base/query.h"

namespace weir {
namespace {

constexpr std::size_t kMaxBytes = 8192;
constexpr std::string_view kSlashes = "://";

Error Wrong(std::string_view what) { return {Code::kInvalidArgument, std::string(what)}; }

/// The parts as they are written.
struct Parts {
  std::string_view scheme;
  std::optional<std::string_view> user;  // with its password
  std::string_view hosts;
  std::string_view path;  // with its slash
  std::optional<std::string_view> query;
};

/// Where the user and password end. Access keys of stores often contain a slash, and the path of a
/// store never contains an @, so there the last @ counts. A web address may have one in its
/// path.
std::size_t EndOfUser(std::string_view scheme, std::string_view place) {
  if (scheme == "http" || scheme == "https") place = place.substr(0, place.find('/'));
  return place.rfind('@');
}

std::optional<Parts> Split(std::string_view text) {
  const std::size_t end = text.find(kSlashes);
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  Parts parts;
  parts.scheme = text.substr(0, end);
  std::string_view place = text.substr(end + kSlashes.size());
  if (const std::size_t mark = place.find('?'); mark != std::string_view::npos) {
    parts.query = place.substr(mark + 1);
    place = place.substr(0, mark);
  }
  if (const std::size_t at = EndOfUser(parts.scheme, place); at != std::string_view::npos) {
    parts.user = place.substr(0, at);
    place.remove_prefix(at + 1);
  }
  const std::size_t slash = std::min(place.find('/'), place.size());
  parts.hosts = place.substr(0, slash);
  parts.path = place.substr(slash);
  return parts;
}

/// Takes the part up to `separator` off the front of `rest`; all of it if there is none.
std::string_view Take(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

/// False for a broken escape, and for a zero byte, which would end a C string.
bool Decode(std::string_view text, std::string& to) {
  std::optional<std::string> decoded = PercentDecoded(text);
  if (!decoded || decoded->find('\0') != std::string::npos) return false;
  to = std::move(*decoded);
  return true;
}

bool IsControl(char c) noexcept { return (c >= 0 && c < ' ') || c == '\x7f'; }

bool IsHost(std::string_view name) {
  constexpr std::size_t kMaxName = 255;  // of the domain name system
  return !name.empty() && name.size() <= kMaxName &&
         std::none_of(name.begin(), name.end(), [](char c) {
           return IsControl(c) ||
                  std::string_view(" /?#@[]\\\"<>^`{|}").find(c) != std::string_view::npos;
         });
}

bool IsScheme(std::string_view scheme) {
  return std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
}

Result<UrlHost> ReadHost(std::string_view text) {
  UrlHost host;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return Wrong("invalid host: missing ]");
    host.name = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
  } else {
    const std::size_t end = std::min(text.find(':'), text.size());
    if (!Decode(text.substr(0, end), host.name)) return Wrong("invalid host");
    text.remove_prefix(end);
  }
  if (!IsHost(host.name)) return Wrong(host.name.empty() ? "missing host" : "invalid host");
  if (text.empty()) return host;
  const auto port = ParseNumber<std::uint16_t>(text.substr(1));
  if (text.front() != ':' || !port || *port == 0) return Wrong("invalid port (1 to 65535)");
  host.port = *port;
  return host;
}

Status ReadHosts(std::string_view list, Url& url) {
  if (list.empty()) return {};
  // One more round than there are commas: a list that ends with one has an empty last host.
  for (auto left = std::count(list.begin(), list.end(), ',') + 1; left > 0; --left) {
    Result<UrlHost> host = ReadHost(Take(list, ','));
    if (!host.ok()) return host.error();
    url.hosts.push_back(std::move(*host));
  }
  return {};
}

Status ReadOptions(std::string_view query, Url& url) {
  QueryReader reader(query);
  while (const auto pair = reader.Next()) {
    auto& [name, value] = url.options.emplace_back();
    if (!Decode(pair->key, name) || !Decode(pair->value, value)) {
      return Wrong("an option has invalid percent-encoding");
    }
  }
  return {};
}

}  // namespace

Result<Url> ParseUrl(std::string_view text) {
  if (text.size() > kMaxBytes) return Wrong("longer than 8192 bytes");
  if (std::any_of(text.begin(), text.end(), IsControl))
    return Wrong("contains a control character");
  const std::optional<Parts> parts = Split(text);
  if (!parts || !IsScheme(parts->scheme)) return Wrong("invalid URL scheme");

  Url url;
  url.scheme = parts->scheme;
  url.has_user = parts->user.has_value();
  std::string_view password = parts->user.value_or("");
  if (!Decode(Take(password, ':'), url.user) || !Decode(password, url.password)) {
    return Wrong("the user or password has invalid percent-encoding");
  }
  if (Status read = ReadHosts(parts->hosts, url); !read.ok()) return read.error();
  const std::string_view path = parts->path;
  if (!Decode(path.substr(path.empty() ? 0 : 1), url.path)) {
    return Wrong("the path has invalid percent-encoding");
  }
  if (Status read = ReadOptions(parts->query.value_or(""), url); !read.ok()) return read.error();
  return url;
}

std::string_view SchemeOf(std::string_view text) noexcept {
  const std::size_t end = text.find(':');
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end);
}

std::string WithoutSecrets(std::string_view text) {
  const std::optional<Parts> parts = Split(text);
  if (!parts) return std::string(text);
  std::string shown(parts->scheme);
  shown += kSlashes;
  if (parts->user) shown += "***@";
  shown += parts->hosts;
  shown += parts->path;
  if (parts->query) shown += "?***";
  return shown;
}

std::string JoinHostPort(std::string_view host, std::uint16_t port) {
  const bool brackets = host.find(':') != std::string_view::npos;
  std::string joined(brackets ? "[" : "");
  joined += host;
  joined += brackets ? "]:" : ":";
  return joined + std::to_string(port);
}

}  // namespace weir
