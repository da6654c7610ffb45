#pragma once

#include <string>
#include <vector>

#include "support/mysql_family_server.h"

namespace weir::test {

/// A private, real MariaDB for a test. Starting takes about a second (the files are copied from a
/// template that the first start leaves in the build directory). As root it runs as the system user
/// `mysql`.
class MariadbServer : public MysqlFamilyServer {
 public:
  explicit MariadbServer(std::vector<std::string> settings = {});
};

}  // namespace weir::test
