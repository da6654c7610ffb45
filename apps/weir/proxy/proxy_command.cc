// weir proxy: limits in front of any HTTP server, without changing it.

#include <signal.h>
#include <time.h>

#include <filesystem>
#include <iostream>
#include <map>

#include "command.h"
#include "library/store_routes.h"
#include "proxy/proxy_service.h"
#include "restart_note.h"
#include "telemetry/log.h"

namespace weir::app::proxy_command {
namespace {

using telemetry::Level;
using telemetry::Log;

/// When the policy files were written, as far as that can be determined.
std::map<std::string, std::filesystem::file_time_type> WriteTimes(
    const std::vector<std::string>& files) {
  std::map<std::string, std::filesystem::file_time_type> times;
  for (const std::string& file : files) {
    std::error_code error;
    const auto time = std::filesystem::last_write_time(file, error);
    if (!error) times[file] = time;
  }
  return times;
}

void Reload(ProxyService& service) {
  if (const Status status = service.Reload(); !status) {
    Log(Level::kError, "policies not reloaded; the current ones stay in force",
        {{"error", std::string_view(status.error().message)}});
    return;
  }
  Log(Level::kInfo, "policies reloaded");
}

/// Serves until SIGTERM or SIGINT; SIGHUP and a changed policy file reload.
int Run(const config::Config& config, const RestartNote& changes) {
  // Blocked before any thread is created, so that all inherit it and sigtimedwait gets all signals.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  telemetry::ConfigureLog({.level = static_cast<Level>(config.log.level),
                           .format = config.log.format == config::LogFormat::kJson
                                         ? telemetry::LogFormat::kJson
                                         : telemetry::LogFormat::kConsole});
  auto opened = ProxyService::Open(config);
  if (!opened) {
    std::cerr << "weir: " << opened.error().message << '\n';
    return StartFailure(opened.error());
  }
  ProxyService& service = **opened;
  auto written = WriteTimes(config.policies);
  service.Start();
  while (true) {
    const timespec second{1, 0};
    const int got = sigtimedwait(&signals, nullptr, &second);
    if (got == SIGTERM || got == SIGINT) break;
    auto now = WriteTimes(config.policies);
    if (got == SIGHUP || now != written) Reload(service);
    if (got == SIGHUP) changes.Write();
    written = std::move(now);
  }
  service.Stop();
  return 0;
}

/// The values of the command line, before they are merged.
struct Flags {
  std::string config_file;
  std::map<std::string, std::string> values;  // by key of the configuration
  std::map<std::string, std::string> names;   // their flags, for messages
};

/// Environment, then flags, over the file.
config::Config ReadConfig(const Flags& flags, std::vector<policy::yaml::Problem>& problems) {
  std::vector<config::Override> overrides = config::ReadEnvironment().overrides;
  for (const auto& [key, value] : flags.values) {
    overrides.push_back({key, value, flags.names.at(key)});
  }
  config::Config config = config::Load(flags.config_file, overrides, problems);
  for (std::string& wrong : library::WrongUrls(config)) {
    problems.push_back(config::ProblemIn(config, flags.config_file, std::move(wrong)));
  }
  if (problems.empty() && config.proxy.upstreams.empty()) {
    problems.push_back(
        {"--upstream", {}, "required: the server to forward requests to, http[s]://host:port"});
  }
  return config;
}

int Start(const Flags& flags) {
  std::vector<policy::yaml::Problem> problems;
  const config::Config config = ReadConfig(flags, problems);
  for (const auto& problem : problems) std::cerr << "weir: " << problem.ToString() << '\n';
  if (!problems.empty()) return 2;
  return Run(config, RestartNote(flags.config_file, [&flags] {
               std::vector<policy::yaml::Problem> now;
               (void)ReadConfig(flags, now);
               return now;
             }));
}

constexpr const char* kFooter =
    R"(Policies see the entries ip, api_key, user, route and method. See docs/guide/proxy.md.
  weir proxy --upstream http://127.0.0.1:9000 --per-ip 1000/1m
)";

void Configure(Syntax word) {
  auto flags = std::make_shared<Flags>();
  word.AddOption("--config", flags->config_file, "Configuration file, as for weir serve");
  // Each flag is a setting of the configuration; one that is given several times is a list.
  const auto value = [&](const char* flag, const char* key, const char* help) {
    flags->names[key] = flag;
    return word
        .AddOption(
            flag,
            [flags = flags.get(), key](const std::vector<std::string>& texts) {
              std::string joined;
              for (const std::string& text : texts) joined += (joined.empty() ? "" : ",") + text;
              flags->values[key] = joined;
            },
            help)
        .OneValueEach()
        .TakeAll();
  };
  value("--upstream", "proxy.upstream",
        "http[s]://host:port of a server; several take turns (required)");
  value("--listen", "proxy.listen", "Address or port to listen on (127.0.0.1:8000)");
  value("--tls-cert", "tls.cert", "PEM certificate chain, to serve TLS; needs --tls-key");
  value("--tls-key", "tls.key", "PEM file with its private key");
  value("--admin", "proxy.admin",
        "Address or port of /metrics, /healthz and /readyz, or off (off)");
  value("--policies", "policies", "Policy files, separated by commas");
  value("--policy-store", "policy_store", "Database with the admin API's policies (auto)");
  value("--per-ip", "proxy.per_ip", "Limit per client address (100/60m unless there are policies)");
  // Hidden, so that --help fits on a screen.
  value("--unmatched", "unmatched", "Requests that no policy applies to: allow or deny").Hidden();
  value("--domain", "proxy.domain", "Domain of the policies, if they have several");
  value("--trusted-proxies", "trusted_proxies",
        "Networks whose X-Forwarded-For is trusted, separated by commas");
  value("--api-key-header", "proxy.api_key_header", "Header for the entry api_key (X-API-Key)");
  value("--user-header", "proxy.user_header", "Header for the entry user; clients can forge it");
  value("--ipv6-prefix", "ipv6_prefix", "IPv6 prefix length that identifies a client (64)");
  value("--headers-x-ratelimit", "headers.x_ratelimit", "Send X-RateLimit-… (true)");
  value("--headers-ietf", "headers.ietf", "Send RateLimit and RateLimit-Policy (true)");
  value("--upgrades", "proxy.upgrades",
        "Protocols to upgrade to, separated by commas, or off (websocket)");
  value("--websocket-messages", "proxy.websocket_messages",
        "Limit WebSocket messages with the domain websocket (false)");
  value("--connect-timeout", "proxy.connect_timeout", "Time to connect to an upstream (5s)");
  value("--stall-timeout", "proxy.stall_timeout",
        "Time without progress in a request or response (1m)");
  value("--header-timeout", "proxy.header_timeout", "Time for a request head to arrive (10s)");
  value("--idle-timeout", "proxy.idle_timeout", "Time between requests of a connection (75s)");
  value("--tunnel-timeout", "proxy.tunnel_timeout", "Time without traffic in a tunnel (1h)");
  value("--store", "store", "Where limits are kept, as for weir serve (memory:)");
  value("--store-timeout", "store_timeout", "How long a request may wait for the store (100ms)");
  value("--store-required", "store_required", "Refuse to start without the store (false)");
  value("--data", "data", "Folder for limits that survive a restart (./weir-data)");
  value("--threads", "threads", "Threads; 0 is one per core (0)");
  value("--log-format", "log.format", "console or json (console)");
  value("--log-level", "log.level", "debug, info, warn, error or off (info)");
  word.Footer(kFooter);
  word.OnRun([flags] { return Start(*flags); });
}

const Command kProxy("proxy", "Run a rate-limiting reverse proxy in front of an HTTP server.",
                     Configure);

}  // namespace
}  // namespace weir::app::proxy_command
