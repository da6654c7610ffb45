// Settings for programs with weir::Limiter that read the configuration of the service.

#include <array>
#include <string>

#include "base/url.h"
#include "config/settings.h"
#include "config/values.h"

namespace weir::config {
namespace {

Status SetService(Config& config, Texts texts) {
  const std::string& url = texts[0];
  const Result<Url> parts = ParseUrl(url);
  if (!parts.ok() || (parts->scheme != "http" && parts->scheme != "https")) {
    return Expected("a URL that begins with http:// or https://", Beginning(url));
  }
  config.embedded.service = url;
  return {};
}

Status SetServiceKey(Config& config, Texts texts) {
  config.embedded.service_key = texts[0];
  return {};
}

Status SetServiceCa(Config& config, Texts texts) {
  config.embedded.service_ca = texts[0];
  return {};
}

const std::array<Setting, 4> kLibrarySettings = {{
    {{"mode", "",
      "For programs with weir::Limiter: embedded (decide in process) or service (call one)"},
     [](Config& c, Texts t) {
       return Set(c.embedded.service_mode, ReadChoice(t[0], {"embedded", "service"}));
     }},
    {{"service", "", "For programs with weir::Limiter: URL of the service, with mode: service"},
     SetService},
    {{"service_key", "", "For programs with weir::Limiter: the API key for the service"},
     SetServiceKey},
    {{"service_ca", "",
      "For programs with weir::Limiter: PEM file with the CA certificates to trust"},
     SetServiceCa},
}};

}  // namespace

std::span<const Setting> LibrarySettings() { return kLibrarySettings; }

}  // namespace weir::config
