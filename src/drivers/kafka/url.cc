#include "drivers/kafka/url.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/percent.h"

namespace weir::kafka {
namespace {

constexpr std::string_view kScheme = "kafka://";
constexpr std::size_t kMaxBytes = 8192;
constexpr std::size_t kMaxBrokers = 64;
constexpr std::size_t kMaxProperties = 64;

Error Wrong(std::string message) {
  return {Code::kInvalidArgument, "Kafka URL: " + std::move(message)};
}

/// Takes the part up to `separator` off the front of `rest`.
std::string_view Take(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return part;
}

bool IsHost(std::string_view host) {
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return false;
    host = host.substr(1, host.size() - 2);
    return !host.empty() && host.find_first_not_of("0123456789abcdefABCDEF:.") == host.npos;
  }
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_';
  });
}

bool IsPort(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535;
}

Result<std::string> ReadBrokers(std::string_view list) {
  std::string brokers;
  std::size_t count = 0;
  do {
    const std::string_view broker = Take(list, ',');
    const std::size_t bracket = broker.find(']');
    const std::size_t colon = broker.find(':', bracket == broker.npos ? 0 : bracket);
    const std::string_view host = broker.substr(0, colon);
    const std::string_view port = colon == broker.npos ? "9092" : broker.substr(colon + 1);
    if (!IsHost(host)) {
      return Wrong("invalid host \"" + std::string(broker) + "\"; write kafka://host:9092");
    }
    if (!IsPort(port)) return Wrong("invalid port \"" + std::string(port) + "\" (1 to 65535)");
    if (++count > kMaxBrokers) return Wrong("more than 64 brokers");
    brokers += (brokers.empty() ? "" : ",") + std::string(host) + ":" + std::string(port);
  } while (!list.empty());
  return brokers;
}

bool IsAllowed(std::string_view name) {
  constexpr std::array<std::string_view, 7> kNames = {
      "security.protocol", "client.id", "client.dns.lookup", "broker.address.family",
      "compression.type",  "linger.ms", "compression.codec"};
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return true;
  // Engines and plugins are code from a path, and Kerberos' kinit is a command line.
  if (name.starts_with("ssl.engine") || name == "sasl.kerberos.kinit.cmd") return false;
  return name.starts_with("ssl.") || name.starts_with("sasl.") || name.starts_with("socket.");
}

Status ReadProperties(std::string_view query, Url& url) {
  while (!query.empty()) {
    std::string_view value = Take(query, '&');
    const auto name = PercentDecoded(Take(value, '='));
    const auto decoded = PercentDecoded(value);
    if (!name || !decoded) return Wrong("a property is not percent-encoded correctly");
    if (!IsAllowed(*name)) {
      return Wrong("unknown property \"" + *name +
                   "\"; there are security.protocol, ssl.*, sasl.*, socket.*, client.id, "
                   "client.dns.lookup, broker.address.family, compression.type and linger.ms");
    }
    if (decoded->empty()) return Wrong("property \"" + *name + "\" has no value");
    if (url.properties.size() >= kMaxProperties) return Wrong("more than 64 properties");
    url.properties.emplace_back(*name, *decoded);
  }
  return {};
}

bool Has(const Url& url, std::string_view name) {
  return std::any_of(url.properties.begin(), url.properties.end(),
                     [name](const auto& property) { return property.first == name; });
}

Status ReadUser(std::string_view credentials, Url& url) {
  const auto user = PercentDecoded(Take(credentials, ':'));
  const auto password = PercentDecoded(credentials);
  if (!user || user->empty() || !password || password->empty()) {
    return Wrong("write user:password@ with both, percent-encoded");
  }
  url.properties.emplace_back("sasl.username", *user);
  url.properties.emplace_back("sasl.password", *password);
  return {};
}

}  // namespace

Result<Url> ParseUrl(std::string_view text) {
  if (text.size() > kMaxBytes) return Wrong("longer than 8192 bytes");
  if (std::any_of(text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; })) {
    return Wrong("contains a control character");
  }
  if (!text.starts_with(kScheme)) return Wrong("does not begin with kafka://");
  text.remove_prefix(kScheme.size());
  std::string_view where = Take(text, '?');
  if (where.ends_with('/')) where.remove_suffix(1);

  Url url;
  if (const std::size_t at = where.rfind('@'); at != where.npos) {
    if (Status read = ReadUser(where.substr(0, at), url); !read) return read.error();
    where = where.substr(at + 1);
  }
  auto brokers = ReadBrokers(where);
  if (!brokers) return brokers.error();
  url.brokers = *std::move(brokers);
  const bool user = !url.properties.empty();
  if (Status read = ReadProperties(text, url); !read) return read.error();
  if (user && !Has(url, "sasl.mechanism") && !Has(url, "sasl.mechanisms")) {
    url.properties.emplace_back("sasl.mechanism", "PLAIN");
  }
  if (user && !Has(url, "security.protocol")) {
    return Wrong("with a user, say security.protocol=SASL_SSL (or SASL_PLAINTEXT, unencrypted)");
  }
  return url;
}

}  // namespace weir::kafka
