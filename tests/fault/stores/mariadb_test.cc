#include "support/mariadb_server.h"

namespace weir::test {
using FaultServer = MariadbServer;
}

#include "fault/stores/mysql_family_suite.h"
