// What programs with weir::Limiter are told, when they read the configuration of the service.

#include <array>
#include <string>

#include "base/url.h"
#include "config/settings.h"
#include "config/values.h"

namespace weir::config {
namespace {

Status SetMode(Config& config, Texts texts) {
  if (texts[0] != "embedded" && texts[0] != "service") {
    return Expected("embedded or service", texts[0]);
  }
  config.embedded.service_mode = texts[0] == "service";
  return {};
}

Status SetService(Config& config, Texts texts) {
  const std::string& url = texts[0];
  const Result<Url> parts = ParseUrl(url);
  if (!parts.ok() || (parts->scheme != "http" && parts->scheme != "https")) {
    return Expected("a URL that begins with http:// or https://", url.substr(0, url.find(':')));
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
    {{"mode", "", "of programs with weir::Limiter: embedded (decide there) or service (ask one)"},
     SetMode},
    {{"service", "", "of programs with weir::Limiter: the service that mode: service asks"},
     SetService},
    {{"service_key", "", "of programs with weir::Limiter: the key that they show the service"},
     SetServiceKey},
    {{"service_ca", "", "of programs with weir::Limiter: PEM file of the service's authority"},
     SetServiceCa},
}};

}  // namespace

std::span<const Setting> LibrarySettings() { return kLibrarySettings; }

}  // namespace weir::config
