#include "support/postgres_server.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "support/database_files.h"
#include "support/ports.h"

namespace weir::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUser = "postgres";

std::string Program(const std::string& name) {
  for (const char* version : {"17", "16", "15"}) {
    const fs::path path = fs::path("/usr/lib/postgresql") / version / "bin" / name;
    if (fs::exists(path)) return path;
  }
  return name;
}

void MakeCluster(const fs::path& data) {
  const RunResult made =
      RunProgram({Program("initdb"), "--pgdata", data, "--username", "weir", "--auth", "trust",
                  "--encoding", "UTF8", "--locale", "C", "--no-sync"},
                 {.directory = "/", .user = kUser});
  if (made.exit_code != 0) throw std::runtime_error("initdb: " + made.error_output);
}

}  // namespace

PostgresServer::PostgresServer(std::vector<std::string> settings)
    : port_(FreePort()), settings_(std::move(settings)) {
  const fs::path data = dir_ / "data";
  fs::copy(DatabaseTemplate("postgres-template", kUser, MakeCluster), data,
           fs::copy_options::recursive);
  fs::permissions(data, fs::perms::owner_all);
  GiveTo(kUser, dir_.path());
  Start();
}

PostgresServer::PostgresServer(const PostgresServer& primary) : port_(FreePort()) {
  GiveTo(kUser, dir_.path());
  const RunResult copied =
      RunProgram({Program("pg_basebackup"), "--host", "127.0.0.1", "--port",
                  std::to_string(primary.port_), "--username", "weir", "--pgdata", dir_ / "data",
                  "--write-recovery-conf", "--checkpoint", "fast", "--no-sync"},
                 {.directory = "/", .user = kUser});
  if (copied.exit_code != 0) throw std::runtime_error("pg_basebackup: " + copied.error_output);
  Start();
}

PostgresServer::~PostgresServer() {
  if (process_) End(SIGQUIT);
}

std::string PostgresServer::url(const std::string& database) const {
  std::string directory;
  for (char c : dir_.path().string()) directory += c == '/' ? "%2F" : std::string(1, c);
  return "postgres://weir@" + directory + ":" + std::to_string(port_) + "/" + database;
}

std::string PostgresServer::tcp_url(const std::string& database) const {
  return "postgres://weir@127.0.0.1:" + std::to_string(port_) + "/" + database;
}

std::string PostgresServer::CreateDatabase(const std::string& name) {
  Query("CREATE DATABASE " + name);
  return url(name);
}

void PostgresServer::RequirePasswords() {
  Stop();
  std::ofstream(dir_ / "data" / "pg_hba.conf")
      << "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
  Start();
}

std::string PostgresServer::Query(const std::string& sql, const std::string& database) {
  const RunResult result =
      RunProgram({Program("psql"), "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set",
                  "ON_ERROR_STOP=1", "--command", sql, url(database)});
  if (result.exit_code != 0) throw std::runtime_error("psql: " + result.error_output);
  std::string out = result.output;
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

void PostgresServer::Promote() { Query("SELECT pg_promote()"); }

int PostgresServer::TerminateBackends() {
  return std::stoi(
      Query("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"));
}

void PostgresServer::Start() {
  std::vector<std::string> argv = {Program("postgres"), "-D", dir_ / "data"};
  const auto set = [&argv](std::string setting) {
    argv.emplace_back("-c");
    argv.push_back(std::move(setting));
  };
  set("port=" + std::to_string(port_));
  set("listen_addresses=127.0.0.1");
  set("unix_socket_directories=" + dir_.path().string());
  set("max_connections=200");
  set("shared_buffers=128MB");
  set("max_wal_size=4GB");
  set("fsync=on");
  for (const std::string& setting : settings_) set(setting);
  process_ = std::make_unique<ChildProcess>(std::move(argv),
                                            SpawnOptions{.directory = "/", .user = kUser});
  if (!process_->WaitForError("ready to accept")) {
    throw std::runtime_error("postgres did not start: " + process_->error_output());
  }
}

void PostgresServer::End(int signal) {
  SignalAll(SIGCONT);
  process_->Signal(signal);
  if (!process_->Wait()) process_->Kill();
  process_.reset();
}

void PostgresServer::Stop() { End(SIGINT); }
void PostgresServer::Crash() { End(SIGQUIT); }
void PostgresServer::Pause() { SignalAll(SIGSTOP); }
void PostgresServer::Resume() { SignalAll(SIGCONT); }

void PostgresServer::SignalAll(int signal) {
  // The postmaster first, so that it starts nothing new; then its children.
  process_->Signal(signal);
  const std::string pid = std::to_string(process_->pid());
  std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
  for (pid_t child = 0; children >> child;) kill(child, signal);
}

}  // namespace weir::test
