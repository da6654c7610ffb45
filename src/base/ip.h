#pragma once

// Internet addresses as a limiter sees them: one address has one text, and networks can be
// compared.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir {

/// An IPv4 or IPv6 address. An IPv4-mapped IPv6 address (::ffff:192.0.2.1) is the IPv4 address it
/// stands for, so a client has one identity whichever socket it uses. A plain value.
class IpAddress {
 public:
  /// Accepts `192.0.2.1`, `2001:db8::1`, and the latter with a zone (`fe80::1%eth0`), which is
  /// dropped.
  static std::optional<IpAddress> Parse(std::string_view text) noexcept;

  /// Also accepts what proxies write: `192.0.2.1:4711`, `[2001:db8::1]:4711`, `"[…]"`.
  static std::optional<IpAddress> ParseHop(std::string_view text) noexcept;

  bool is_v4() const noexcept { return v4_; }
  int bits() const noexcept { return v4_ ? 32 : 128; }

  /// The address with all but its first `prefix` bits cleared. Requires 0 <= prefix <= bits().
  IpAddress Masked(int prefix) const noexcept;

  /// The canonical text (RFC 5952 for IPv6).
  std::string ToString() const;

  friend bool operator==(const IpAddress&, const IpAddress&) = default;

 private:
  bool v4_ = true;
  std::array<std::uint8_t, 16> bytes_{};  // IPv4: the first four
};

/// A block of addresses such as 10.0.0.0/8. A plain value.
class IpNetwork {
 public:
  /// Accepts CIDR notation or a single address. Bits beyond the prefix are ignored.
  static Result<IpNetwork> Parse(std::string_view text);

  bool Contains(const IpAddress& address) const noexcept;

 private:
  IpNetwork(IpAddress base, int prefix) noexcept : base_(base), prefix_(prefix) {}

  IpAddress base_;
  int prefix_;
};

/// Parses each text; the error names the one that is wrong.
Result<std::vector<IpNetwork>> ParseNetworks(std::span<const std::string> texts);

bool ContainsAddress(std::span<const IpNetwork> networks, const IpAddress& address) noexcept;

/// The prefix lengths by which clients are identified. An IPv6 client usually owns a whole /64.
struct IpGrouping {
  int v4_prefix = 32;
  int v6_prefix = 64;
};

/// The text that identifies a client: `192.0.2.1`, or the network for a group: `2001:db8:0:1::/64`.
std::string ClientKey(const IpAddress& address, const IpGrouping& grouping = {});

}  // namespace weir
