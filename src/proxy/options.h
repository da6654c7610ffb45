#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip.h"
#include "filter/headers.h"
#include "protocol/http/head.h"
#include "proxy/upstream.h"

namespace weir::proxy {

struct Timeouts {
  std::chrono::milliseconds idle{75'000};       ///< between requests of one client
  std::chrono::milliseconds header{10'000};     ///< from a head's first byte to its last
  std::chrono::milliseconds connect{5'000};     ///< to an upstream
  std::chrono::milliseconds stall{60'000};      ///< nothing moves in a request or its response
  std::chrono::milliseconds tunnel{3'600'000};  ///< nothing moves in an upgraded connection
  std::chrono::milliseconds linger{2'000};      ///< for a client to take our last answer
  /// How long the end of a response waits for the store to confirm that a permit was released.
  std::chrono::milliseconds release{1'000};
};

/// In every Timeouts::stall this much of a request's body must arrive, or its end, and a client
/// must take this much of a response, or all that is available.
inline constexpr std::size_t kMinBodyPace = std::size_t{16} * 1024;

/// The domain of the policies that limit WebSocket messages.
inline constexpr std::string_view kMessageDomain = "websocket";

struct ProxyOptions {
  std::vector<Upstream> upstreams;
  std::shared_ptr<const net::TlsClientContext> upstream_tls;  ///< for upstreams with https://
  std::shared_ptr<net::TlsContext> tls;                       ///< null: plain text
  std::vector<IpNetwork> trusted_proxies;
  IpGrouping grouping;
  std::string domain;                        ///< of the policies
  std::string api_key_header = "X-API-Key";  ///< the entry `api_key`
  std::string user_header;                   ///< the entry `user`; empty: there is none
  bool default_applies = false;  ///< apply the default policy to requests that no other applies to
  /// Protocols that a connection may be upgraded to. Any other would be a tunnel past the limits:
  /// requests inside h2c would not be counted.
  std::vector<std::string> upgrades = {"websocket"};
  /// Each WebSocket message of a client is checked against the policies of kMessageDomain.
  bool websocket_messages = false;
  filter::HeaderChoice headers;
  http::HeadLimits limits;
  PoolLimits pool;
  Timeouts timeouts;
};

/// Counters of one reactor's proxy, written by its thread and readable from any.
struct ProxyStats {
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> rejected{0};  ///< malformed, too large or too slow
  std::atomic<std::uint64_t> upstream_errors{0};
  std::atomic<std::uint64_t> upstream_timeouts{0};
  std::atomic<std::uint64_t> retries{0};
  std::atomic<std::uint64_t> tunnels{0};
  std::atomic<std::uint64_t> messages{0};  ///< of WebSocket clients, if they are counted
  std::atomic<std::uint64_t> bytes_up{0};
  std::atomic<std::uint64_t> bytes_down{0};
};

/// Adds without a locked instruction: only one thread writes.
inline void Count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace weir::proxy
