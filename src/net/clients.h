#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ip.h"

namespace weir::net {

/// How many connections one client may have.
struct ClientBound {
  std::size_t most = 0;           ///< of one address, or one IPv6 network of 64 bits; 0: any number
  std::vector<IpNetwork> exempt;  ///< proxies, which connect for many clients
};

/// Counts the connections of each client on one reactor.
///
/// Thread safety: belongs to its reactor's thread.
class Clients {
 public:
  /// A client that has connections, and how many. Its address is stable until the last has closed.
  using Entry = std::pair<const std::string, std::size_t>;

  explicit Clients(ClientBound bound) : bound_(std::move(bound)) {}

  /// Counts one more. Nothing if the client has reached its bound; null if it is not counted.
  std::optional<Entry*> Enter(const std::optional<IpAddress>& address);
  void Leave(Entry* entry);

  bool counts() const noexcept { return bound_.most != 0; }
  std::size_t size() const noexcept { return open_.size(); }

 private:
  const ClientBound bound_;
  std::unordered_map<std::string, std::size_t> open_;
};

}  // namespace weir::net
