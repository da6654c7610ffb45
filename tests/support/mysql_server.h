#pragma once

#include <string>
#include <vector>

#include "support/mysql_family_server.h"

namespace weir::test {

/// A real MySQL of its own for a test, as mysql/fetch.sh downloads it. Starting takes some seconds,
/// so a test program should have one for all its tests.
class MysqlServer : public MysqlFamilyServer {
 public:
  explicit MysqlServer(std::vector<std::string> settings = {});

  /// Why there is none on this machine; empty if there is. The first call may download it.
  static const std::string& Absence();
};

/// Likewise, an early MySQL 8.0 (mysql8/fetch.sh).
class Mysql8Server : public MysqlFamilyServer {
 public:
  explicit Mysql8Server(std::vector<std::string> settings = {});

  static const std::string& Absence();
};

/// Why a kind of server is not on this machine; empty for those that always are.
template <typename Server>
const std::string& AbsenceOf() {
  static const std::string here;
  if constexpr (requires { Server::Absence(); }) {
    return Server::Absence();
  } else {
    return here;
  }
}

}  // namespace weir::test
