#include "support/mysql_server.h"

#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <utility>

#include "support/database_files.h"
#include "support/paths.h"

namespace weir::test {
namespace {

namespace fs = std::filesystem;

/// The server needs newer libraries than this machine has, so it is run by the loader that came
/// with it, from the folder that holds both.
std::vector<std::string> Command() {
  if (!MysqlServer::Absence().empty()) throw std::runtime_error(MysqlServer::Absence());
  const fs::path root = SourcePath("build/mysql/root/usr");
  fs::path loader;
  for (const auto& folder : fs::directory_iterator(root / "lib")) {
    if (!folder.is_directory()) continue;
    for (const auto& file : fs::directory_iterator(folder)) {
      if (file.path().filename().string().starts_with("ld-linux")) loader = file.path();
    }
  }
  std::vector<std::string> argv = {loader.string(),
                                   "--library-path",
                                   loader.parent_path().string(),
                                   (root / "sbin/mysqld").string(),
                                   "--no-defaults",
                                   "--basedir=" + root.string(),
                                   "--plugin-dir=" + (root / "lib/mysql/plugin").string(),
                                   "--secure-file-priv=NULL",
                                   "--mysqlx=OFF",
                                   "--performance-schema=OFF",
                                   "--disable-log-bin",
                                   "--innodb-redo-log-capacity=64M"};
  // It does not start as root unless told so.
  if (geteuid() == 0) argv.emplace_back("--user=root");
  return argv;
}

void MakeMysql(const fs::path& data) {
  std::vector<std::string> argv = Command();
  argv.emplace_back("--initialize-insecure");
  argv.emplace_back("--datadir=" + data.string());
  const RunResult made = RunProgram(std::move(argv), {.directory = "/"}, std::chrono::minutes(2));
  if (made.exit_code != 0) throw std::runtime_error("mysqld: " + made.error_output);
}

}  // namespace

const std::string& MysqlServer::Absence() {
  static const std::string absence = [] {
    const RunResult fetched =
        RunProgram({SourcePath("tests/support/mysql/fetch.sh")}, {}, std::chrono::minutes(4));
    return fetched.exit_code == 0 ? std::string() : "no MySQL here: " + fetched.error_output;
  }();
  return absence;
}

MysqlServer::MysqlServer(std::vector<std::string> settings)
    : MysqlFamilyServer({Command(), "", DatabaseTemplate("mysql-template", "root", MakeMysql)},
                        std::move(settings)) {}

}  // namespace weir::test
