#pragma once

#include <string>
#include <vector>

#include "support/mysql_family_server.h"

namespace weir::test {

/// A private, real MySQL for a test, as downloaded by mysql/fetch.sh. Starting takes some seconds,
/// so a test program should share one among all its tests.
class MysqlServer : public MysqlFamilyServer {
 public:
  explicit MysqlServer(std::vector<std::string> settings = {});

  /// Why this machine has none; empty if it has one. The first call may download it.
  static const std::string& Absence();
};

/// Likewise for an early MySQL 8.0 (mysql8/fetch.sh).
class Mysql8Server : public MysqlFamilyServer {
 public:
  explicit Mysql8Server(std::vector<std::string> settings = {});

  static const std::string& Absence();
};

/// Why a kind of server is unavailable on this machine; empty for those that are always available.
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
