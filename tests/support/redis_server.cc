#include "support/redis_server.h"

#include <csignal>
#include <stdexcept>
#include <utility>

#include "support/ports.h"

namespace weir::test {

RedisServer::RedisServer(RedisOptions options)
    : options_(std::move(options)),
      port_(FreePort()),
      bus_port_(options_.cluster ? FreePort() : std::uint16_t{0}) {
  if (options_.certificates != nullptr) pair_ = options_.certificates->Issue("redis", "redis");
  Start();
}

RedisServer::~RedisServer() {
  if (process_) Kill();
}

std::string RedisServer::url() const {
  const bool tls = options_.certificates != nullptr;
  std::string url = tls ? "rediss://" : "redis://";
  if (!options_.password.empty()) url += ":" + options_.password + "@";
  url += "127.0.0.1:" + std::to_string(port_);
  if (tls) url += "?ca=" + options_.certificates->authority().string();
  return url;
}

std::string RedisServer::Command(std::vector<std::string> words) const {
  std::vector<std::string> argv = {"redis-cli", "-p", std::to_string(port_), "--no-auth-warning"};
  if (!options_.password.empty()) argv.insert(argv.end(), {"-a", options_.password});
  if (options_.certificates != nullptr) {
    argv.insert(argv.end(), {"--tls", "--cacert", options_.certificates->authority()});
  }
  argv.insert(argv.end(), std::make_move_iterator(words.begin()),
              std::make_move_iterator(words.end()));
  const RunResult result = RunProgram(std::move(argv));
  if (result.exit_code != 0) {
    throw std::runtime_error("redis-cli: " + result.output + result.error_output);
  }
  std::string out = result.output;
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

void RedisServer::Start() {
  const std::string port = std::to_string(port_);
  std::vector<std::string> argv = {"redis-server", "--bind", "127.0.0.1", "--dir",
                                   dir_.path(),    "--save", "",          "--port"};
  if (options_.certificates == nullptr) {
    argv.push_back(port);
  } else {
    argv.insert(argv.end(), {"0", "--tls-port", port, "--tls-cert-file", pair_.certificate,
                             "--tls-key-file", pair_.key, "--tls-ca-cert-file",
                             options_.certificates->authority(), "--tls-auth-clients", "no"});
  }
  if (!options_.password.empty()) argv.insert(argv.end(), {"--requirepass", options_.password});
  if (options_.durable) argv.insert(argv.end(), {"--appendonly", "yes", "--appendfsync", "always"});
  if (options_.cluster) {
    argv.insert(argv.end(), {"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
                             "--cluster-port", std::to_string(bus_port_)});
  }
  argv.insert(argv.end(), options_.settings.begin(), options_.settings.end());
  process_ = std::make_unique<ChildProcess>(std::move(argv));
  if (!process_->WaitForLine("Ready to accept connections")) {
    throw std::runtime_error("redis-server did not start: " + process_->output() +
                             process_->error_output());
  }
}

void RedisServer::Kill() {
  process_->Signal(SIGCONT);
  process_->Kill();
  process_.reset();
}

void RedisServer::Pause() { process_->Signal(SIGSTOP); }
void RedisServer::Resume() { process_->Signal(SIGCONT); }

}  // namespace weir::test
