// Telemetry of checks: traces, log lines of refusals, an optional gauge.

#include "base/number.h"
#include "base/url.h"
#include "config/settings.h"
#include "config/values.h"

namespace weir::config {
namespace {

Status SetRatio(Config& config, Texts texts) {
  const std::string& text = texts[0];
  const auto value = ParseFraction(text);
  if (!value || !(*value >= 0 && *value <= 1)) return Expected("a number from 0 to 1", text);
  config.traces.ratio = *value;
  return {};
}

Status SetEndpoint(Config& config, Texts texts) {
  const std::string& text = texts[0];
  const Result<Url> url = ParseUrl(text);
  for (const std::string_view scheme : {"http", "https", "grpc", "grpcs"}) {
    if (url.ok() && url->scheme == scheme && url->hosts.size() == 1) {
      config.traces.endpoint = text;
      return {};
    }
  }
  if (text.empty() || text == "off") {
    config.traces.endpoint.clear();
    return {};
  }
  return Expected("http://, https://, grpc:// or grpcs:// with a host and port, or off",
                  Beginning(text));
}

}  // namespace

Status SetHeaderFields(std::vector<std::string>& target, Texts texts) {
  target.clear();
  for (const std::string& text : texts) {
    const std::size_t colon = text.find(':');
    const bool line = text.find_first_of("\r\n") == std::string::npos;
    if (colon == std::string::npos || colon == 0 || !line) {
      return Error{Code::kInvalidArgument, "expected header fields such as 'api-key: …'"};
    }
    target.push_back(text);
  }
  return {};
}

namespace {

// clang-format off
const Setting kTelemetrySettings[] = {
    {{"log.refusals", "", "Log lines per second and thread for refused checks; 0: none"},
     [](Config& c, Texts t) { return Set(c.log.refusals, ReadWhole(t[0], 0, 100'000)); }},
    {{"log.keys", "", "How keys are written in log lines and traces: plain or hashed"},
     [](Config& c, Texts t) { return Set(c.log.hashed_keys, ReadChoice(t[0], {"plain", "hashed"})); }},
    {{"log.key_salt", "", "Secret salt for hashed keys"},
     [](Config& c, Texts t) -> Status { c.log.key_salt = t[0]; return {}; }},
    {{"metrics.tokens_remaining", "", "Include what each policy's last decision left in /metrics"},
     [](Config& c, Texts t) { return Set(c.metrics.tokens_remaining, ReadSwitch(t[0])); }},
    {{"traces.endpoint", "", "OTLP receiver: http://host:4318, grpc://host:4317, or off"}, SetEndpoint},
    {{"traces.ratio", "", "Share of requests to trace unless the caller decides"}, SetRatio},
    {{"traces.headers", "", "Header fields for the receiver, each 'name: value'", true},
     [](Config& c, Texts t) { return SetHeaderFields(c.traces.headers, t); }},
    {{"traces.service_name", "", "service.name of the exported spans"},
     [](Config& c, Texts t) -> Status {
       if (t[0].empty()) return Expected("a name", t[0]);
       c.traces.service_name = t[0];
       return {};
     }},
    {{"traces.max_per_second", "", "Maximum number of traced requests per second"},
     [](Config& c, Texts t) { return Set(c.traces.max_per_second, ReadWhole(t[0], 1, 1'000'000)); }},
    {{"traces.queue", "", "Maximum number of spans waiting for export; more are dropped and counted"},
     [](Config& c, Texts t) { return Set(c.traces.queue, ReadWhole(t[0], 64, 1'000'000)); }},
    {{"traces.batch", "", "Maximum number of spans per export request"},
     [](Config& c, Texts t) { return Set(c.traces.batch, ReadWhole(t[0], 1, 65'536)); }},
    {{"traces.interval", "", "How long a span waits for a batch to fill"},
     [](Config& c, Texts t) { return Set(c.traces.interval, ReadTime(t[0], false)); }},
    {{"traces.timeout", "", "Timeout of an export request"},
     [](Config& c, Texts t) { return Set(c.traces.timeout, ReadTime(t[0], false)); }},
};
// clang-format on

}  // namespace

std::span<const Setting> TelemetrySettings() { return kTelemetrySettings; }

}  // namespace weir::config
