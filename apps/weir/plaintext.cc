#include "plaintext.h"

#include "config/plaintext.h"
#include "telemetry/log.h"

namespace weir::app {

void WarnOfPlaintext(std::string_view setting, std::string_view url) {
  const auto doubt = config::PlaintextDoubt(setting, url);
  if (!doubt) return;
  telemetry::Log(telemetry::Level::kWarn, "questionable setting",
                 {{"why", std::string_view(*doubt)}});
}

}  // namespace weir::app
