#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::mysql {

struct Endpoint {
  std::string host = {};
  std::uint16_t port = 3306;
};

/// What protects a connection. There is nothing in between: TLS is verified, or says it is not.
enum class Tls {
  kOff,
  kVerified,    ///< the server's chain and its name are verified; never plaintext
  kUnverified,  ///< encrypted, but the server is not verified
};

/// Where a server is and which user to connect as.
struct Target {
  std::vector<Endpoint> endpoints;  ///< tried in this order; none: the socket
  std::string user;
  std::string password;
  std::string database;
  std::string socket;  ///< a unix socket, instead of host and port
  Tls tls = Tls::kOff;
  std::string tls_ca = {};    ///< who vouches for the server; empty: the system's authorities
  std::string tls_cert = {};  ///< shown to the server if it asks for one
  std::string tls_key = {};
};

/// mysql://user:password@host:port,host:port/database?tls=required&tls_ca=FILE, also mariadb://.
/// Options: socket=PATH instead of hosts; tls=off, required or insecure-no-verify; tls_ca, tls_cert
/// and tls_key, each of which means tls=required where `tls` is not given. Percent escapes are
/// understood everywhere. Messages never show the password.
Result<Target> ParseUrl(std::string_view text);

}  // namespace weir::mysql
