#include "support/mariadb_server.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "support/ports.h"

namespace weir::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUser = "mysql";

void GiveToServer(const fs::path& path) {
  if (geteuid() != 0) return;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer{};
  getpwnam_r(kUser, &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) throw std::runtime_error("no system user mysql");
  const auto give = [found](const fs::path& what) {
    if (lchown(what.c_str(), found->pw_uid, found->pw_gid) != 0) {
      throw std::runtime_error("cannot chown " + what.string());
    }
  };
  give(path);
  for (const auto& inside : fs::recursive_directory_iterator(path)) give(inside.path());
}

// Other tests may be making it at the same time: one works, the others wait.
fs::path Template() {
  const fs::path home = fs::path(WEIR_BUILD_DIR) / "mariadb-template";
  const int lock = open((home.string() + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock < 0) throw std::runtime_error("cannot make " + home.string() + ".lock");
  flock(lock, LOCK_EX);
  if (!fs::exists(home)) {
    const TempDir scratch;
    GiveToServer(scratch.path());
    const fs::path data = scratch / "data";
    const RunResult made =
        RunProgram({"mariadb-install-db", "--no-defaults", "--datadir=" + data.string(),
                    "--auth-root-authentication-method=normal", "--skip-test-db",
                    "--innodb-log-file-size=64M"},
                   {.directory = "/", .user = kUser});
    if (made.exit_code != 0) {
      throw std::runtime_error("mariadb-install-db: " + made.output + made.error_output);
    }
    const fs::path unfinished = home.string() + ".new";
    fs::remove_all(unfinished);
    fs::copy(data, unfinished, fs::copy_options::recursive);
    fs::rename(unfinished, home);
  }
  close(lock);
  return home;
}

}  // namespace

MariadbServer::MariadbServer(std::vector<std::string> settings)
    : port_(FreePort()), settings_(std::move(settings)) {
  fs::copy(Template(), dir_ / "data", fs::copy_options::recursive);
  dir_.Write("init.sql",
             "CREATE DATABASE IF NOT EXISTS weir;\n"
             "CREATE USER IF NOT EXISTS weir@'%';\n"
             "CREATE USER IF NOT EXISTS weir@localhost;\n"
             "GRANT ALL ON *.* TO weir@'%' WITH GRANT OPTION;\n"
             "GRANT ALL ON *.* TO weir@localhost WITH GRANT OPTION;\n");
  GiveToServer(dir_.path());
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
  if (result.exit_code != 0) throw std::runtime_error("mariadb: " + result.error_output);
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
