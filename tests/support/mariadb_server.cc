#include "support/mariadb_server.h"

#include <filesystem>
#include <stdexcept>
#include <utility>

#include "support/database_files.h"

namespace weir::test {
namespace {

constexpr const char* kUser = "mysql";

void MakeMariadb(const std::filesystem::path& data) {
  const RunResult made = RunProgram(
      {"mariadb-install-db", "--no-defaults", "--datadir=" + data.string(),
       "--tmpdir=" + (data.parent_path() / "tmp").string(),
       "--auth-root-authentication-method=normal", "--skip-test-db", "--innodb-log-file-size=64M"},
      {.directory = "/", .user = kUser});
  if (made.exit_code != 0) {
    throw std::runtime_error("mariadb-install-db: " + made.output + made.error_output);
  }
}

}  // namespace

MariadbServer::MariadbServer(std::vector<std::string> settings)
    : MysqlFamilyServer({{"mariadbd", "--no-defaults", "--innodb-log-file-size=64M"},
                         kUser,
                         DatabaseTemplate("mariadb-template", kUser, MakeMariadb)},
                        std::move(settings)) {}

}  // namespace weir::test
