#include "support/mysql_family_server.h"

#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "support/database_files.h"
#include "support/ports.h"

namespace weir::test {

MysqlFamilyServer::MysqlFamilyServer(Program program, std::vector<std::string> settings)
    : port_(FreePort()), program_(std::move(program)), settings_(std::move(settings)) {
  std::filesystem::copy(program_.files, dir_ / "data", std::filesystem::copy_options::recursive);
  // A separate folder: a server that starts removes all temporary tables in its folder.
  std::filesystem::create_directory(dir_ / "tmp");
  // The server's own id, which must differ between two that replicate.
  std::filesystem::remove(dir_ / "data" / "auto.cnf");
  dir_.Write("init.sql",
             "CREATE DATABASE IF NOT EXISTS weir;\n"
             "CREATE USER IF NOT EXISTS weir@'%';\n"
             "CREATE USER IF NOT EXISTS weir@localhost;\n"
             "GRANT ALL ON *.* TO weir@'%' WITH GRANT OPTION;\n"
             "GRANT ALL ON *.* TO weir@localhost WITH GRANT OPTION;\n"
             "CREATE USER IF NOT EXISTS node@'%';\n"
             "GRANT ALL ON weir.* TO node@'%';\n");
  if (!program_.user.empty()) GiveTo(program_.user, dir_.path());
  Start();
}

MysqlFamilyServer::~MysqlFamilyServer() {
  if (process_) process_->Kill();
}

std::string MysqlFamilyServer::url(const std::string& database) const {
  return "mysql://weir@/" + database + "?socket=" + socket();
}

std::string MysqlFamilyServer::tcp_url(const std::string& database) const {
  return "mysql://weir@127.0.0.1:" + std::to_string(port_) + "/" + database;
}

std::string MysqlFamilyServer::CreateDatabase(const std::string& name) {
  Query("CREATE DATABASE " + name);
  return url(name);
}

std::string MysqlFamilyServer::Query(const std::string& sql, const std::string& database) {
  const RunResult result =
      RunProgram({"mariadb", "--no-defaults", "--user=weir", "--batch", "--skip-column-names",
                  "--socket=" + socket(), database, "--execute=" + sql});
  if (result.exit_code != 0) throw std::runtime_error("mariadb: " + result.error_output);
  std::string out = result.output;
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

void MysqlFamilyServer::Start() {
  std::vector<std::string> argv = program_.argv;
  for (const std::string& option :
       {"--datadir=" + (dir_ / "data").string(), "--port=" + std::to_string(port_),
        std::string("--bind-address=127.0.0.1"), "--socket=" + socket(),
        "--pid-file=" + (dir_ / "pid").string(), "--tmpdir=" + (dir_ / "tmp").string(),
        "--init-file=" + (dir_ / "init.sql").string(), std::string("--skip-name-resolve"),
        std::string("--innodb-flush-log-at-trx-commit=1"),
        std::string("--innodb-buffer-pool-size=128M"), std::string("--max-connections=200")}) {
    argv.push_back(option);
  }
  for (const std::string& setting : settings_) argv.push_back("--" + setting);
  process_ = std::make_unique<ChildProcess>(std::move(argv),
                                            SpawnOptions{.directory = "/", .user = program_.user});
  if (!process_->WaitForError("ready for connections")) {
    throw std::runtime_error(program_.argv.front() + " did not start: " + process_->error_output());
  }
}

void MysqlFamilyServer::Stop() {
  Resume();
  process_->Terminate();
  process_.reset();
}

void MysqlFamilyServer::Crash() {
  process_->Kill();
  process_.reset();
}

void MysqlFamilyServer::Pause() { process_->Signal(SIGSTOP); }
void MysqlFamilyServer::Resume() { process_->Signal(SIGCONT); }

}  // namespace weir::test
