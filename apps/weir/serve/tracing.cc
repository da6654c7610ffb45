#include "serve/tracing.h"

#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "base/hex.h"
#include "telemetry/log.h"
#include "telemetry/version.h"

namespace weir::app {
namespace {

std::string InstanceName() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return std::string(host.data()) + ":" + std::to_string(getpid());
}

/// 16 hex digits: enough to tell keys apart.
std::string HashedKey(const std::string& salt, std::string_view key) {
  const config::Digest digest = config::Sha256(salt + std::string(key));
  std::string text = "#";
  for (std::size_t i = 0; i < 8; ++i) AppendHex(text, digest[i]);
  return text;
}

}  // namespace

Result<std::unique_ptr<Tracing>> Tracing::Open(const config::Config& config) {
  const config::Config::Traces& settings = config.traces;
  if (settings.endpoint.empty()) return std::unique_ptr<Tracing>();
  auto endpoint = telemetry::otlp::Endpoint::Parse(settings.endpoint);
  if (!endpoint)
    return Error{endpoint.error().code, "traces.endpoint: " + endpoint.error().message};
  telemetry::otlp::ExporterOptions exporter;
  exporter.endpoint = std::move(*endpoint);
  exporter.headers = settings.headers;
  exporter.origin = {settings.service_name, std::string(telemetry::kVersion), InstanceName()};
  exporter.batch = settings.batch;
  exporter.interval = settings.interval;
  exporter.timeout = settings.timeout;
  return std::unique_ptr<Tracing>(new Tracing(
      {.ratio = settings.ratio, .queue = settings.queue, .max_per_second = settings.max_per_second},
      std::move(exporter)));
}

limiter::ObserverOptions ObserverOptionsOf(const config::Config& config, Tracing* tracing) {
  limiter::ObserverOptions options;
  if (tracing != nullptr) options.tracer = &tracing->tracer();
  options.refusals_per_second = config.log.refusals;
  options.store = config.store.substr(0, config.store.find(':'));
  options.remaining = config.metrics.tokens_remaining;
  options.secret_text = [salt = config.log.key_salt](std::string_view key) {
    return HashedKey(salt, key);
  };
  if (config.log.hashed_keys) options.key_text = options.secret_text;
  return options;
}

}  // namespace weir::app
