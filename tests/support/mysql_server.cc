#include "support/mysql_server.h"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include "support/database_files.h"
#include "support/paths.h"

namespace weir::test {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

const std::string& Fetched(const std::string& folder) {
  static std::map<std::string, std::string> absences;
  const auto [at, first] = absences.try_emplace(folder);
  if (first) {
    const RunResult fetched = RunProgram({SourcePath("tests/support/" + folder + "/fetch.sh")}, {},
                                         std::chrono::minutes(4));
    if (fetched.exit_code != 0) at->second = "no " + folder + " here: " + fetched.error_output;
  }
  return at->second;
}

Words WithCommonOptions(Words argv, const fs::path& root) {
  for (const std::string& option :
       {std::string("--no-defaults"), "--basedir=" + root.string(),
        std::string("--secure-file-priv=NULL"), std::string("--mysqlx=OFF"),
        std::string("--performance-schema=OFF"), std::string("--disable-log-bin")}) {
    argv.push_back(option);
  }
  // It does not start as root unless this option is set.
  if (geteuid() == 0) argv.emplace_back("--user=root");
  return argv;
}

/// The server needs newer libraries than this machine has, so it is run by the loader that came
/// with it, from the folder that holds both.
Words Command() {
  if (!MysqlServer::Absence().empty()) throw std::runtime_error(MysqlServer::Absence());
  const fs::path root = SourcePath("build/mysql/root/usr");
  fs::path loader;
  for (const auto& folder : fs::directory_iterator(root / "lib")) {
    if (!folder.is_directory()) continue;
    for (const auto& file : fs::directory_iterator(folder)) {
      if (file.path().filename().string().starts_with("ld-linux")) loader = file.path();
    }
  }
  Words argv = WithCommonOptions({loader.string(), "--library-path", loader.parent_path().string(),
                                  (root / "sbin/mysqld").string()},
                                 root);
  argv.emplace_back("--plugin-dir=" + (root / "lib/mysql/plugin").string());
  argv.emplace_back("--innodb-redo-log-capacity=64M");
  return argv;
}

Words Command8() {
  if (!Mysql8Server::Absence().empty()) throw std::runtime_error(Mysql8Server::Absence());
  const fs::path root = SourcePath("build/mysql8/root");
  return WithCommonOptions({(root / "bin/mysqld").string()}, root);
}

void Initialize(Words argv, const fs::path& data) {
  argv.emplace_back("--initialize-insecure");
  argv.emplace_back("--datadir=" + data.string());
  argv.emplace_back("--tmpdir=" + (data.parent_path() / "tmp").string());
  const RunResult made = RunProgram(std::move(argv), {.directory = "/"}, std::chrono::minutes(2));
  if (made.exit_code != 0) throw std::runtime_error("mysqld: " + made.error_output);
}

}  // namespace

const std::string& MysqlServer::Absence() { return Fetched("mysql"); }
const std::string& Mysql8Server::Absence() { return Fetched("mysql8"); }

MysqlServer::MysqlServer(std::vector<std::string> settings)
    : MysqlFamilyServer(
          {Command(), "",
           DatabaseTemplate("mysql-template", "root",
                            [](const fs::path& data) { Initialize(Command(), data); })},
          std::move(settings)) {}

Mysql8Server::Mysql8Server(std::vector<std::string> settings)
    : MysqlFamilyServer(
          {Command8(), "",
           DatabaseTemplate("mysql8-template", "root",
                            [](const fs::path& data) { Initialize(Command8(), data); })},
          std::move(settings)) {}

}  // namespace weir::test
