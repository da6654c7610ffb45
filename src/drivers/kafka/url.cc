#include "drivers/kafka/url.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/url.h"

namespace weir::kafka {
namespace {

constexpr std::size_t kMaxBrokers = 64;
constexpr std::size_t kMaxProperties = 64;

Error Wrong(std::string message) {
  return {Code::kInvalidArgument, "Kafka URL: " + std::move(message)};
}

Result<std::string> JoinBrokers(const std::vector<UrlHost>& hosts) {
  constexpr std::uint16_t kDefaultPort = 9092;
  if (hosts.empty()) return Wrong("missing host; write kafka://host:9092");
  if (hosts.size() > kMaxBrokers) return Wrong("more than 64 brokers");
  std::string brokers;
  for (const UrlHost& host : hosts) {
    if (!brokers.empty()) brokers += ',';
    brokers += JoinHostPort(host.name, host.port == 0 ? kDefaultPort : host.port);
  }
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

Status AddProperties(std::vector<std::pair<std::string, std::string>> options, Url& url) {
  if (options.size() > kMaxProperties) return Wrong("more than 64 properties");
  for (auto& [name, value] : options) {
    if (!IsAllowed(name)) {
      return Wrong("unknown property \"" + name +
                   "\"; known: security.protocol, ssl.*, sasl.*, socket.*, client.id, "
                   "client.dns.lookup, broker.address.family, compression.type and linger.ms");
    }
    if (value.empty()) return Wrong("property \"" + name + "\" has no value");
    url.properties.emplace_back(std::move(name), std::move(value));
  }
  return {};
}

bool Has(const Url& url, std::string_view name) {
  return std::any_of(url.properties.begin(), url.properties.end(),
                     [name](const auto& property) { return property.first == name; });
}

}  // namespace

Result<Url> ParseUrl(std::string_view text) {
  Result<weir::Url> parts = weir::ParseUrl(text);
  if (!parts.ok()) return Wrong(parts.error().message);
  if (parts->scheme != "kafka") return Wrong("must begin with kafka://");
  if (!parts->path.empty()) return Wrong("a path is not supported");
  Result<std::string> brokers = JoinBrokers(parts->hosts);
  if (!brokers.ok()) return brokers.error();

  Url url;
  url.brokers = std::move(*brokers);
  if (parts->has_user) {
    if (parts->user.empty() || parts->password.empty()) {
      return Wrong("give both user and password, percent-encoded: user:password@");
    }
    url.properties.emplace_back("sasl.username", std::move(parts->user));
    url.properties.emplace_back("sasl.password", std::move(parts->password));
  }
  if (Status added = AddProperties(std::move(parts->options), url); !added) return added.error();
  if (parts->has_user && !Has(url, "sasl.mechanism") && !Has(url, "sasl.mechanisms")) {
    url.properties.emplace_back("sasl.mechanism", "PLAIN");
  }
  if (parts->has_user && !Has(url, "security.protocol")) {
    return Wrong("with a user, set security.protocol=SASL_SSL (or SASL_PLAINTEXT, unencrypted)");
  }
  return url;
}

}  // namespace weir::kafka
