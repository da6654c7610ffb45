// weir proxy: limits in front of any HTTP server, without a change to it.

#include <signal.h>
#include <time.h>

#include <filesystem>
#include <iostream>
#include <map>

#include "command.h"
#include "policy/duration.h"
#include "proxy/proxy_service.h"
#include "telemetry/log.h"

namespace weir::app {
namespace {

using telemetry::Level;
using telemetry::Log;

/// When the policy files were written, as far as that can be told.
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
    Log(Level::kError, "policies not reloaded; nothing has changed",
        {{"error", std::string_view(status.error().message)}});
    return;
  }
  Log(Level::kInfo, "policies reloaded");
}

/// Serves until SIGTERM or SIGINT; SIGHUP and a changed policy file reload.
int Run(const ProxySettings& settings) {
  // Blocked before any thread is made, so that all inherit it and sigtimedwait gets every signal.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  telemetry::ConfigureLog({.level = static_cast<Level>(settings.config.log.level),
                           .format = settings.config.log.format == config::LogFormat::kJson
                                         ? telemetry::LogFormat::kJson
                                         : telemetry::LogFormat::kConsole});
  auto opened = ProxyService::Open(settings);
  if (!opened) {
    std::cerr << "weir proxy: " << opened.error().message << '\n';
    return StartFailure(opened.error());
  }
  ProxyService& service = **opened;
  auto written = WriteTimes(settings.config.policies);
  service.Start();
  while (true) {
    const timespec second{1, 0};
    const int got = sigtimedwait(&signals, nullptr, &second);
    if (got == SIGTERM || got == SIGINT) break;
    auto now = WriteTimes(settings.config.policies);
    if (got == SIGHUP || now != written) Reload(service);
    written = std::move(now);
  }
  service.Stop();
  telemetry::FlushLog();
  return 0;
}

/// What the command line says, before it is put together.
struct Flags {
  ProxySettings settings;
  std::string config_file;
  std::map<std::string, std::string> values;  // by key of the configuration
};

void AddTimeout(CLI::App& word, const char* name, std::chrono::milliseconds& target,
                const char* help) {
  word.add_option_function<std::string>(
          name,
          [&target, name](const std::string& text) {
            const auto duration = policy::ParseDuration(text);
            if (!duration) throw CLI::ValidationError(name, duration.error().message);
            target = std::chrono::ceil<std::chrono::milliseconds>(*duration);
          },
          help)
      ->default_str(policy::FormatDuration(target));
}

/// Environment, then flags, over the file; prints what is wrong.
bool LoadConfig(Flags& flags) {
  std::vector<config::Override> overrides = config::ReadEnvironment().overrides;
  for (const auto& [key, value] : flags.values) overrides.push_back({key, value, "--" + key});
  std::vector<policy::yaml::Problem> problems;
  flags.settings.config = config::Load(flags.config_file, overrides, problems);
  for (const auto& problem : problems) std::cerr << "weir proxy: " << problem.ToString() << '\n';
  return problems.empty();
}

constexpr const char* kFooter =
    R"(Each request is held against the policies as one descriptor with the entries ip, api_key, user,
route and method. Allowed requests are passed on, others are answered 429 with Retry-After. Without
--policies and --per-ip, each address gets the default policy: 100 at once, 10 per second.

  weir proxy --upstream http://127.0.0.1:9000 --per-ip 100/60m
  weir proxy --upstream http://10.0.0.1 --upstream http://10.0.0.2 --policies policies.yaml

A changed policy file and SIGHUP reload policies. SIGTERM drains and ends. docs/guide/proxy.md
)";

void Configure(CLI::App& word, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  ProxySettings& settings = flags->settings;
  word.add_option("--upstream", settings.upstreams,
                  "http://host:port of the server. Several take turns.")
      ->required();
  word.add_option("--listen", settings.listen, "Where clients come in.")->capture_default_str();
  word.add_option("--admin", settings.admin, "Address of /metrics, /healthz, /readyz, or off.")
      ->capture_default_str();
  word.add_option("--config", flags->config_file, "Configuration file, as for weir serve.");
  const auto value = [&](const char* flag, const char* key, const char* help) {
    word.add_option_function<std::string>(
        flag, [flags = flags.get(), key](const std::string& text) { flags->values[key] = text; },
        help);
  };
  value("--policies", "policies", "Policy files, separated by commas.");
  word.add_option("--per-ip", settings.per_ip,
                  "Instead of policies: 100/60m, each address's in any such time.");
  word.add_option("--domain", settings.domain, "The policies' domain, if they are of several.");
  value("--trusted-proxies", "trusted_proxies",
        "Networks whose X-Forwarded-For is believed, by commas.");
  word.add_option("--api-key-header", settings.api_key_header, "Header that is the entry api_key.")
      ->capture_default_str();
  word.add_option("--user-header", settings.user_header,
                  "Header that is the entry user. Anyone can send it!");
  value("--ipv6-prefix", "ipv6_prefix", "IPv6 clients are told apart by this many bits (64).");
  value("--headers-x-ratelimit", "headers.x_ratelimit", "Send X-RateLimit-… (true).");
  value("--headers-ietf", "headers.ietf", "Send RateLimit and RateLimit-Policy (true).");
  AddTimeout(word, "--connect-timeout", settings.timeouts.connect, "To connect to an upstream.");
  AddTimeout(word, "--stall-timeout", settings.timeouts.stall,
             "Nothing moves in a request or its response.");
  AddTimeout(word, "--header-timeout", settings.timeouts.header, "For a request head to arrive.");
  AddTimeout(word, "--idle-timeout", settings.timeouts.idle, "Between requests of a client.");
  AddTimeout(word, "--tunnel-timeout", settings.timeouts.tunnel, "Nothing moves in a tunnel.");
  value("--store", "store", "Where limits are kept, as for weir serve (memory:).");
  value("--store-timeout", "store_timeout", "How long a request may wait for the store.");
  value("--store-required", "store_required", "true: refuse to start without the store (false).");
  value("--data", "data", "Folder where limits survive a restart (./weir-data).");
  value("--threads", "threads", "Reactors; 0: one per core (0).");
  value("--log-format", "log.format", "console or json (console).");
  value("--log-level", "log.level", "debug, info, warn, error or off (info).");
  word.footer(kFooter);
  word.callback([flags, &exit_code] { exit_code = LoadConfig(*flags) ? Run(flags->settings) : 2; });
}

const Command kProxy("proxy", "Put limits in front of an HTTP server.", Configure);

}  // namespace
}  // namespace weir::app
