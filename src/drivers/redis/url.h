#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::redis {

struct Endpoint {
  std::string host = "127.0.0.1";
  std::uint16_t port = 6379;

  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;  // NOLINT: no pointer here
};

struct TlsOptions {
  bool on = false;
  /// PEM file of the CAs to trust; empty: the system's authorities.
  std::string ca_file = {};
  /// Shown to the server if it asks for one.
  std::string certificate_file = {};
  std::string key_file = {};
  /// False trusts any server that answers.
  bool verify = true;
};

/// The longest that checks may wait for others.
inline constexpr std::chrono::milliseconds kLongestGather{10};

/// Where to connect, and with which credentials.
struct Address {
  std::vector<Endpoint> endpoints = {{}};  ///< One, or some nodes of a cluster.
  bool cluster = false;
  std::string user = {};
  std::string password = {};
  std::uint32_t database = 0;
  TlsOptions tls = {};
  std::string tag = {};  ///< Cluster: the user's tag by which keys are to share a slot.
  bool spread = true;    ///< Cluster: keys that are never charged together may use different slots.
  /// How long a check may wait for others that go to the server in the same call.
  std::chrono::nanoseconds gather{0};
};

/// Reads `redis://[user[:password]@]host[:port][/database]`, `rediss://…` for TLS, and
/// `redis+cluster://` or `rediss+cluster://` with one or more `host[:port]`, separated by commas,
/// without a database. User and password may hold %XX; `:password@` alone is the default user's.
/// TLS takes `?tls_ca=FILE&tls_cert=FILE&tls_key=FILE` and `tls=insecure-no-verify`, a cluster
/// `?tag=NAME` or `?spread=off`, both `?gather=1ms`. Errors never repeat the password.
Result<Address> ParseUrl(std::string_view text);

}  // namespace weir::redis
