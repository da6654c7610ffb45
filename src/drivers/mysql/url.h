#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::mysql {

/// Where a server is and who asks.
struct Target {
  std::string host;
  std::uint16_t port = 3306;
  std::string user;
  std::string password;
  std::string database;
  std::string socket;       ///< a unix socket, instead of host and port
  bool tls = false;         ///< refuse to talk without TLS
  std::string tls_ca = {};  ///< the authority that the server's certificate must come from
};

/// mysql://user:password@host:port/database?socket=PATH&tls=required&tls_ca=PATH, also mariadb://.
/// Percent escapes are understood everywhere. Messages never show the password.
Result<Target> ParseUrl(std::string_view url);

}  // namespace weir::mysql
