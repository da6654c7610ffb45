// Settings of `weir proxy`, and of GET /v1/auth for other proxies, and the one table that contains
// all settings.

#include <algorithm>
#include <vector>

#include "base/ascii.h"
#include "base/duration.h"
#include "base/number.h"
#include "base/url.h"
#include "config/settings.h"
#include "config/values.h"
#include "weir/quota.h"

namespace weir::config {
namespace {

Status SetAddress(std::string& target, const std::string& text) {
  const std::optional<Address> address = Address::Parse(text);
  if (!address) {
    return Expected("an IP address and port such as 127.0.0.1:8000, a port, or off", text);
  }
  target = address->ToString();
  return {};
}

/// Not off: a proxy that listens nowhere is none.
Status SetListen(Config& config, const std::string& text) {
  const std::optional<Address> address = Address::Parse(text);
  if (!address || address->off) {
    return Expected("an IP address and port such as 127.0.0.1:8000, or a port", text);
  }
  config.proxy.listen = address->ToString();
  return {};
}

/// The servers themselves are looked up when the proxy starts.
Status SetUpstreams(Config& config, Texts texts) {
  for (const std::string& text : texts) {
    const Result<Url> url = ParseUrl(text);
    const bool web = url.ok() && (url->scheme == "http" || url->scheme == "https");
    if (!web || !url->is_origin()) {
      return Expected("http://host:port or https://host:port", WithoutSecrets(text));
    }
  }
  config.proxy.upstreams.assign(texts.begin(), texts.end());
  return {};
}

Status SetPerIp(Config& config, Texts texts) {
  const std::string_view text = texts[0];
  const auto slash = text.find('/');
  const std::string_view digits = text.substr(0, slash);
  const bool number = ParseNumber<std::int64_t>(digits, 1, kMaxLimit).has_value();
  if (!text.empty() &&
      (slash == text.npos || !number || !ParseDuration(text.substr(slash + 1)).ok())) {
    return Expected("at least one request and a time, such as 100/60m", text);
  }
  config.proxy.per_ip = text;
  return {};
}

/// Protocols are tokens, compared case-insensitively.
Status SetUpgrades(Config& config, Texts texts) {
  constexpr std::size_t kMost = 16;
  config.proxy.upgrades.clear();
  for (const std::string& text : texts) {
    if (text == "off" && texts.size() == 1) return {};
    const auto fits = [](char c) { return IsLetterOrDigit(c) || c == '-' || c == '.' || c == '/'; };
    if (text.empty() || text.size() > 64 || !std::all_of(text.begin(), text.end(), fits) ||
        config.proxy.upgrades.size() == kMost) {
      return Expected("up to 16 protocols such as websocket, or off", text);
    }
    config.proxy.upgrades.push_back(text);
  }
  return {};
}

Status SetUpstreamTls(Config& config, Texts texts) {
  const bool verify = texts[0] == "required";
  if (!verify && texts[0] != "insecure-no-verify") {
    return Expected("required or insecure-no-verify", texts[0]);
  }
  config.proxy.upstream_tls_verify = verify;
  return {};
}

// clang-format off
const Setting kProxySettings[] = {
    {{"auth.target", "", "The headers with the path and method, for GET /v1/auth: auto, original, forwarded or none"},
     [](Config& c, Texts t) { return Set(c.auth.target, ReadChoice(t[0], {"auto", "original", "forwarded", "none"})); }},
    {{"proxy.upstream", "", "weir proxy: http[s]://host:port of the servers; several take turns", true},
     SetUpstreams},
    {{"proxy.upstream_tls", "", "weir proxy: required or insecure-no-verify, for https:// upstreams"}, SetUpstreamTls},
    {{"proxy.upstream_tls_ca", "", "weir proxy: PEM file with the CA certificates to trust (the system's)"},
     [](Config& c, Texts t) -> Status { c.proxy.upstream_tls_ca = t[0]; return {}; }},
    {{"proxy.upstream_tls_cert", "", "weir proxy: PEM file with the client certificate for upstreams"},
     [](Config& c, Texts t) -> Status { c.proxy.upstream_tls_cert = t[0]; return {}; }},
    {{"proxy.upstream_tls_key", "", "weir proxy: its private key"},
     [](Config& c, Texts t) -> Status { c.proxy.upstream_tls_key = t[0]; return {}; }},
    {{"proxy.listen", "", "weir proxy: address or port to listen on"},
     [](Config& c, Texts t) { return SetListen(c, t[0]); }},
    {{"proxy.admin", "", "weir proxy: address or port of /metrics, /healthz and /readyz, or off"},
     [](Config& c, Texts t) { return SetAddress(c.proxy.admin, t[0]); }},
    {{"proxy.per_ip", "", "weir proxy: requests per client address and time, such as 100/60m"}, SetPerIp},
    {{"proxy.domain", "", "weir proxy: the domain of its policies"},
     [](Config& c, Texts t) -> Status { c.proxy.domain = t[0]; return {}; }},
    {{"proxy.api_key_header", "", "weir proxy: the header for the entry api_key"},
     [](Config& c, Texts t) { return SetFieldName(c.proxy.api_key_header, t[0]); }},
    {{"proxy.user_header", "", "weir proxy: the header for the entry user; empty: none"},
     [](Config& c, Texts t) { return SetFieldName(c.proxy.user_header, t[0]); }},
    {{"proxy.upgrades", "", "weir proxy: protocols that a connection may be upgraded to, or off", true}, SetUpgrades},
    {{"proxy.websocket_messages", "", "weir proxy: count each WebSocket message of a client as a request"},
     [](Config& c, Texts t) { return Set(c.proxy.websocket_messages, ReadSwitch(t[0])); }},
    {{"proxy.header_timeout", "", "weir proxy: time for a request head to arrive"},
     [](Config& c, Texts t) { return Set(c.proxy.header_timeout, ReadTime(t[0], false)); }},
    {{"proxy.idle_timeout", "", "weir proxy: time between requests of a connection"},
     [](Config& c, Texts t) { return Set(c.proxy.idle_timeout, ReadTime(t[0], false)); }},
    {{"proxy.connect_timeout", "", "weir proxy: time to connect to an upstream"},
     [](Config& c, Texts t) { return Set(c.proxy.connect_timeout, ReadTime(t[0], false)); }},
    {{"proxy.stall_timeout", "", "weir proxy: time without progress in a request or response"},
     [](Config& c, Texts t) { return Set(c.proxy.stall_timeout, ReadTime(t[0], false)); }},
    {{"proxy.tunnel_timeout", "", "weir proxy: time without traffic in a tunnel"},
     [](Config& c, Texts t) { return Set(c.proxy.tunnel_timeout, ReadTime(t[0], false)); }},
    {{"proxy.release_timeout", "", "weir proxy: how long the end of a response waits for a permit to be returned"},
     [](Config& c, Texts t) { return Set(c.proxy.release_timeout, ReadTime(t[0], false)); }},
};
// clang-format on

std::vector<Setting> Joined() {
  std::vector<Setting> all;
  for (const std::span<const Setting> part :
       {ServiceSettings(), ProductSettings(), TelemetrySettings(), XdsSettings(), ProxySettings(),
        LibrarySettings(), StoreSettings()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

std::span<const Setting> ProxySettings() { return kProxySettings; }

std::span<const Setting> AllSettings() {
  static const std::vector<Setting> all = Joined();
  return all;
}

const Setting* FindSetting(std::string_view key) {
  const std::span<const Setting> all = AllSettings();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Setting& one) { return one.info.key == key; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace weir::config
