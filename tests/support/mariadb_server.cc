#include "support/mariadb_server.h"

#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "support/database_files.h"
#include "support/ports.h"

namespace weir::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUser = "mysql";

void MakeDatabase(const fs::path& data) {
  const RunResult made = RunProgram(
      {"mariadb-install-db", "--no-defaults", "--datadir=" + data.string(),
       "--auth-root-authentication-method=normal", "--skip-test-db", "--innodb-log-file-size=64M"},
      {.directory = "/", .user = kUser});
  if (made.exit_code != 0) {
    throw std::runtime_error("mariadb-install-db: " + made.output + made.error_output);
  }
}

}  // namespace

MariadbServer::MariadbServer(std::vector<std::string> settings)
    : port_(FreePort()), settings_(std::move(settings)) {
  fs::copy(DatabaseTemplate("mariadb-template", kUser, MakeDatabase), dir_ / "data",
           fs::copy_options::recursive);
  dir_.Write("init.sql",
             "CREATE DATABASE IF NOT EXISTS weir;\n"
             "CREATE USER IF NOT EXISTS weir@'%';\n"
             "CREATE USER IF NOT EXISTS weir@localhost;\n"
             "GRANT ALL ON *.* TO weir@'%' WITH GRANT OPTION;\n"
             "GRANT ALL ON *.* TO weir@localhost WITH GRANT OPTION;\n");
  GiveTo(kUser, dir_.path());
  Start();
}

MariadbServer::~MariadbServer() {
  if (process_) process_->Kill();
}

std::string MariadbServer::url(const std::string& database) const {
  return "mysql://weir@/" + database + "?socket=" + socket();
}

std::string MariadbServer::tcp_url(const std::string& database) const {
  return "mysql://weir@127.0.0.1:" + std::to_string(port_) + "/" + database;
}

std::string MariadbServer::CreateDatabase(const std::string& name) {
  Query("CREATE DATABASE " + name);
  return url(name);
}

std::string MariadbServer::Query(const std::string& sql, const std::string& database) {
  const RunResult result =
      RunProgram({"mariadb", "--no-defaults", "--user=weir", "--batch", "--skip-column-names",
                  "--socket=" + socket(), database, "--execute=" + sql});
  if (result.exit_code != 0) throw std::runtime_error("mysql: " + result.error_output);
  std::string out = result.output;
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

void MariadbServer::Start() {
  std::vector<std::string> argv = {"mariadbd",
                                   "--no-defaults",
                                   "--datadir=" + (dir_ / "data").string(),
                                   "--port=" + std::to_string(port_),
                                   "--bind-address=127.0.0.1",
                                   "--socket=" + socket(),
                                   "--pid-file=" + (dir_ / "pid").string(),
                                   "--init-file=" + (dir_ / "init.sql").string(),
                                   "--skip-name-resolve",
                                   "--innodb-flush-log-at-trx-commit=1",
                                   "--innodb-buffer-pool-size=128M",
                                   "--innodb-log-file-size=64M",
                                   "--max-connections=200"};
  for (const std::string& setting : settings_) argv.push_back("--" + setting);
  process_ = std::make_unique<ChildProcess>(std::move(argv),
                                            SpawnOptions{.directory = "/", .user = kUser});
  if (!process_->WaitForError("ready for connections")) {
    throw std::runtime_error("mariadbd did not start: " + process_->error_output());
  }
}

void MariadbServer::Stop() {
  Resume();
  process_->Terminate();
  process_.reset();
}

void MariadbServer::Crash() {
  process_->Kill();
  process_.reset();
}

void MariadbServer::Pause() { process_->Signal(SIGSTOP); }
void MariadbServer::Resume() { process_->Signal(SIGCONT); }

}  // namespace weir::test
