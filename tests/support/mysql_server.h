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

}  // namespace weir::test
