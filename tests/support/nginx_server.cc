#include "support/nginx_server.h"

#include <algorithm>
#include <stdexcept>

#include "support/ports.h"
#include "support/tcp_connection.h"
#include "support/wait.h"

namespace weir::test {
namespace {

std::string Replace(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// Runs as ourselves even if we are root: the files belong to us.
constexpr std::string_view kConfig = R"(
worker_processes 1;
daemon off;
master_process off;
pid DIR/pid;
error_log DIR/error.log;
events { worker_connections 1024; }
http {
  log_format timed '$msec $status $remote_addr "$request"';
  access_log DIR/access.log timed;
  keepalive_requests 1000000;
  client_body_temp_path DIR/body;
  proxy_temp_path DIR/proxy;
  fastcgi_temp_path DIR/fastcgi;
  uwsgi_temp_path DIR/uwsgi;
  scgi_temp_path DIR/scgi;
  server {
    listen 127.0.0.1:PORT;
    SERVER
  }
}
)";

bool Listens(std::uint16_t port) {
  try {
    const TcpConnection connection(port);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

}  // namespace

NginxServer::NginxServer(std::string_view server) : port_(FreePort()) {
  std::string config = Replace(std::string(kConfig), "SERVER", server);
  config = Replace(std::move(config), "PORT", std::to_string(port_));
  dir_.Write("nginx.conf", Replace(std::move(config), "DIR", dir_.path().string()));
  Restart();
}

void NginxServer::Kill() { process_->Kill(); }

void NginxServer::Restart() {
  process_ = std::make_unique<ChildProcess>(std::vector<std::string>{
      "nginx", "-p", dir_.path().string(), "-c", (dir_ / "nginx.conf").string()});
  const bool up = WaitUntil([this] { return Listens(port_) || !process_->running(); });
  if (!up || !process_->running()) {
    throw std::runtime_error("nginx does not start: " + process_->error_output());
  }
}

std::string NginxServer::AccessLog() const { return ReadFile(dir_ / "access.log"); }

std::size_t NginxServer::AccessLogLines() const {
  const std::string log = AccessLog();
  return static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n'));
}

}  // namespace weir::test
