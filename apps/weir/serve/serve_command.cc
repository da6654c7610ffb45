#include <pthread.h>
#include <signal.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "config/config.h"
#include "library/store_routes.h"
#include "restart_note.h"
#include "serve/service.h"
#include "telemetry/log.h"

namespace weir::app::serve_command {
namespace {

using telemetry::Level;
using telemetry::Log;

constexpr const char* kFooter =
    R"(Without options, state is kept in memory and ./weir-data; each key gets 100 tokens, 10 a second.
Settings come from the flag, the environment (WEIR_LISTEN_HTTP for listen.http), the file or the
default, in this order (docs/reference/configuration.md). SIGTERM drains; SIGHUP reloads policies.
An address may be a port alone: 8080 listens on 127.0.0.1 only, :8080 on every IPv4 address.

  weir serve --config weir.yaml --policies policies.yaml
  curl -s localhost:8080/v1/check -d '{"key":"user-123"}')";

/// Settings that few users need; hidden, so that --help fits on a screen.
bool IsRare(std::string_view key) {
  return key == "stores" || key.starts_with("move.") || key.starts_with("region.") ||
         key.starts_with("xds.") || key == "unmatched";
}

/// The values of the flags: one list per setting that has a flag.
struct Flags {
  std::string file;
  std::vector<std::vector<std::string>> values;
};

telemetry::LogOptions LogOptionsOf(const config::Config& config) {
  telemetry::LogOptions options;
  options.level = static_cast<Level>(config.log.level);
  options.format = config.log.format == config::LogFormat::kJson ? telemetry::LogFormat::kJson
                                                                 : telemetry::LogFormat::kConsole;
  return options;
}

/// The file, then `overrides`, then the flags.
config::Config ReadConfig(const Flags& flags, std::vector<config::Override> overrides,
                          std::vector<policy::yaml::Problem>& problems) {
  const auto settings = config::Settings();
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (flags.values[i].empty()) continue;
    std::string joined;
    for (const std::string& value : flags.values[i]) joined += (joined.empty() ? "" : ",") + value;
    overrides.push_back({std::string(settings[i].key), joined, std::string(settings[i].flag)});
  }
  config::Config config = config::Load(flags.file, overrides, problems);
  for (std::string& wrong : library::WrongUrls(config)) {
    problems.push_back(config::ProblemIn(config, flags.file, std::move(wrong)));
  }
  if (problems.empty() && config.listen.all_off()) {
    problems.push_back({flags.file, {}, std::string(config::kAllOff)});
  }
  return config;
}

std::optional<config::Config> LoadConfig(const Flags& flags) {
  const config::Environment environment = config::ReadEnvironment();
  std::vector<policy::yaml::Problem> problems;
  config::Config config = ReadConfig(flags, environment.overrides, problems);
  for (const policy::yaml::Problem& problem : problems) {
    std::cerr << "weir: " << problem.ToString() << '\n';
  }
  if (!problems.empty()) return std::nullopt;
  telemetry::ConfigureLog(LogOptionsOf(config));
  for (const std::string& sentence : environment.unknown) Log(Level::kWarn, sentence);
  return config;
}

/// Serves until SIGTERM or SIGINT; SIGHUP reloads.
int Serve(const Flags& flags) {
  // Blocked before any thread is created, so that all of them inherit it and sigwait gets every
  // signal.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  auto config = LoadConfig(flags);
  if (!config) return 2;
  const RestartNote changes(flags.file, [&flags] {
    std::vector<policy::yaml::Problem> problems;
    (void)ReadConfig(flags, config::ReadEnvironment().overrides, problems);
    return problems;
  });
  auto service = Service::Open(std::move(*config));
  if (!service) {
    telemetry::FlushLog();
    std::cerr << "weir: " << service.error().message << '\n';
    return StartFailure(service.error());
  }
  (*service)->Start();
  for (;;) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGHUP) break;
    (*service)->Reload();
    changes.Write();
  }
  Log(Level::kInfo, "draining");
  (*service)->Stop();
  return 0;
}

void Configure(Syntax word) {
  auto flags = std::make_shared<Flags>();
  const auto settings = config::Settings();
  flags->values.resize(settings.size());
  word.AddOption("--config", flags->file, "Configuration file (YAML)").Env("WEIR_CONFIG");
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (settings[i].flag.empty()) continue;
    Option option = word.AddOption(std::string(settings[i].flag), flags->values[i],
                                   std::string(settings[i].help))
                        .TypeName("VALUE")
                        .TakeAll();
    if (IsRare(settings[i].key)) option.Hidden();
    // A switch needs no value on the command line.
    if (settings[i].key == "lenient") option.Values(0, 1).DefaultText("true");
  }
  word.Footer(kFooter);
  word.OnRun([flags] { return Serve(*flags); });
}

const Command kServe("serve", "Run the service: HTTP, gRPC and RESP with one set of limits.",
                     Configure);

}  // namespace
}  // namespace weir::app::serve_command
