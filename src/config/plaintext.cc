#include "config/plaintext.h"

#include <algorithm>
#include <cstdlib>

#include "base/ip.h"
#include "base/url.h"

namespace weir::config {
namespace {

bool IsHere(std::string_view host) {
  static const IpNetwork v4 = *IpNetwork::Parse("127.0.0.0/8");
  static const IpNetwork v6 = *IpNetwork::Parse("::1/128");
  // libpq accepts a socket's path, or @ and its name, in place of a host.
  if (host.empty() || host == "localhost" || host.front() == '/' || host.front() == '@')
    return true;
  const auto address = IpAddress::Parse(host);
  return address && (v4.Contains(*address) || v6.Contains(*address));
}

/// libpq's `allow` and `prefer` leave the choice to the server; any other word is a decision.
bool Decides(std::string_view sslmode) {
  return !sslmode.empty() && sslmode != "allow" && sslmode != "prefer";
}

bool SaysTls(const Url& url, bool postgres) {
  const auto says = [postgres](const auto& option) {
    const auto& [name, value] = option;
    return name == "tls" || name == "tls_ca" || name == "tls_cert" || name == "tls_key" ||
           (postgres && name == "sslmode" && Decides(value));
  };
  if (std::any_of(url.options.begin(), url.options.end(), says)) return true;
  // libpq reads it, too.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
  const char* usual = postgres ? std::getenv("PGSSLMODE") : nullptr;
  return usual != nullptr && Decides(usual);
}

/// The first host on another machine; empty if there is none.
std::string FarHost(const Url& url) {
  for (const UrlHost& host : url.hosts) {
    if (!IsHere(host.name)) return host.name;
  }
  for (const auto& [name, value] : url.options) {
    if (name != "host" && name != "hostaddr") continue;
    for (std::string_view rest = value; !rest.empty();) {
      const std::string_view host = rest.substr(0, rest.find(','));
      if (!IsHere(host)) return std::string(host);
      rest.remove_prefix(std::min(rest.size(), host.size() + 1));
    }
  }
  return {};
}

}  // namespace

std::optional<std::string> PlaintextDoubt(std::string_view setting, std::string_view url) {
  const Result<Url> parsed = ParseUrl(url);
  if (!parsed.ok()) return std::nullopt;  // reported when it is opened
  const bool postgres = parsed->scheme == "postgres" || parsed->scheme == "postgresql";
  const bool mysql = parsed->scheme == "mysql" || parsed->scheme == "mariadb";
  if ((!postgres && !mysql) || SaysTls(*parsed, postgres)) return std::nullopt;
  const std::string host = FarHost(*parsed);
  if (host.empty()) return std::nullopt;
  return std::string(setting) + ": the connection to " + host +
         (postgres ? " is not verified and may be in plaintext" : " is in plaintext") +
         "; add tls=required to its URL, or tls=off if the network is trusted";
}

}  // namespace weir::config
