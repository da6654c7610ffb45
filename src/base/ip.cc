#include "base/ip.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "base/ascii.h"
#include "base/number.h"

namespace weir {

namespace {

constexpr std::size_t kMaxText = INET6_ADDRSTRLEN;

constexpr std::array<std::uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

std::string_view WithoutZone(std::string_view text) noexcept {
  return text.substr(0, text.find('%'));
}

}  // namespace

std::optional<IpAddress> IpAddress::Parse(std::string_view text) noexcept {
  const bool v6 = text.find(':') != std::string_view::npos;
  if (v6) text = WithoutZone(text);
  if (text.empty() || text.size() >= kMaxText) return std::nullopt;
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  std::array<char, kMaxText> terminated{};
  std::copy(text.begin(), text.end(), terminated.begin());

  IpAddress address;
  if (inet_pton(v6 ? AF_INET6 : AF_INET, terminated.data(), address.bytes_.data()) != 1) {
    return std::nullopt;
  }
  address.v4_ = !v6;
  if (v6 && std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), address.bytes_.begin())) {
    std::copy_n(address.bytes_.begin() + kMappedPrefix.size(), 4, address.bytes_.begin());
    std::fill(address.bytes_.begin() + 4, address.bytes_.end(), std::uint8_t{0});
    address.v4_ = true;
  }
  return address;
}

std::optional<IpAddress> IpAddress::ParseHop(std::string_view text) noexcept {
  text = Trim(text);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    return Parse(text.substr(1, end - 1));
  }
  const auto colon = text.find(':');
  const bool v4_with_port =
      colon != std::string_view::npos && text.find(':', colon + 1) == text.npos;
  return Parse(v4_with_port ? text.substr(0, colon) : text);
}

IpAddress IpAddress::Masked(int prefix) const noexcept {
  IpAddress masked = *this;
  const int size = bits() / 8;
  for (int i = 0; i < size; ++i) {
    const int keep = std::clamp(prefix - i * 8, 0, 8);
    masked.bytes_[static_cast<std::size_t>(i)] &= static_cast<std::uint8_t>(0xff00 >> keep);
  }
  return masked;
}

std::string IpAddress::ToString() const {
  std::array<char, kMaxText> text{};
  inet_ntop(v4_ ? AF_INET : AF_INET6, bytes_.data(), text.data(), text.size());
  return text.data();
}

Result<IpNetwork> IpNetwork::Parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto address = IpAddress::Parse(text.substr(0, slash));
  const auto error = [text] {
    return Error{Code::kInvalidArgument, "not an address or a network such as 10.0.0.0/8: \"" +
                                             std::string(text.substr(0, 80)) + "\""};
  };
  if (!address) return error();
  int prefix = address->bits();
  if (slash != std::string_view::npos) {
    const auto given = ParseNumber<int>(text.substr(slash + 1), 0, address->bits());
    if (!given) return error();
    prefix = *given;
  }
  return IpNetwork(address->Masked(prefix), prefix);
}

bool IpNetwork::Contains(const IpAddress& address) const noexcept {
  return address.is_v4() == base_.is_v4() && address.Masked(prefix_) == base_;
}

Result<std::vector<IpNetwork>> ParseNetworks(std::span<const std::string> texts) {
  std::vector<IpNetwork> networks;
  networks.reserve(texts.size());
  for (const std::string& text : texts) {
    auto network = IpNetwork::Parse(text);
    if (!network) return network.error();
    networks.push_back(*network);
  }
  return networks;
}

bool ContainsAddress(std::span<const IpNetwork> networks, const IpAddress& address) noexcept {
  return std::any_of(networks.begin(), networks.end(),
                     [&](const IpNetwork& network) { return network.Contains(address); });
}

std::string ClientKey(const IpAddress& address, const IpGrouping& grouping) {
  const int prefix = address.is_v4() ? grouping.v4_prefix : grouping.v6_prefix;
  if (prefix >= address.bits()) return address.ToString();
  return address.Masked(prefix).ToString() + "/" + std::to_string(prefix);
}

}  // namespace weir
