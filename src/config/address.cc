#include "base/ip.h"
#include "base/number.h"
#include "base/url.h"
#include "config/config.h"

namespace weir::config {

std::optional<Address> Address::Parse(std::string_view text) {
  if (text == "off") return Address{true, {}, 0};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    const auto alone = ParseNumber<std::uint16_t>(text);
    if (!alone) return std::nullopt;
    return Address{false, "127.0.0.1", *alone};
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  Address address;
  const auto port = ParseNumber<std::uint16_t>(digits);
  if (!port) return std::nullopt;
  address.port = *port;
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || host == "*") host = "0.0.0.0";
  if (host == "localhost") host = "127.0.0.1";
  const std::optional<IpAddress> ip = IpAddress::Parse(host);
  // Without brackets, 2001:db8::1:80 would be ambiguous.
  if (!ip || (!bracketed && host.find(':') != std::string_view::npos)) return std::nullopt;
  address.host = std::string(host);
  return address;
}

std::string Address::ToString() const {
  if (off) return "off";
  return JoinHostPort(host, port);
}

bool Address::loopback() const {
  static const IpNetwork v4 = *IpNetwork::Parse("127.0.0.0/8");
  static const IpNetwork v6 = *IpNetwork::Parse("::1");
  const std::optional<IpAddress> ip = IpAddress::Parse(host);
  return ip && (v4.Contains(*ip) || v6.Contains(*ip));
}

}  // namespace weir::config
