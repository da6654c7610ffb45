#include "restart_note.h"

#include <utility>

#include "telemetry/log.h"

namespace weir::app {

using telemetry::Level;
using telemetry::Log;

RestartNote::RestartNote(std::string file, Check check)
    : file_(std::move(file)),
      check_(std::move(check)),
      started_with_(config::FileSettings::Read(file_)) {}

void RestartNote::Write() const {
  if (!started_with_.ok()) return;
  const auto now = config::FileSettings::Read(file_);
  if (!now.ok()) {
    return Log(Level::kWarn, "cannot read the configuration file; a restart would fail",
               {{"error", std::string_view(now.error().message)}});
  }
  if (const auto problems = check_(); !problems.empty()) {
    for (const policy::yaml::Problem& problem : problems) {
      const std::string text = problem.ToString();
      Log(Level::kError, "the configuration is wrong; a restart would fail",
          {{"problem", std::string_view(text)}});
    }
    return;
  }
  std::string names;
  for (const std::string& name : started_with_->ChangedIn(*now)) {
    names += (names.empty() ? "" : ", ") + name;
  }
  if (names.empty()) return;
  Log(Level::kWarn, "the configuration file has changed; restart to apply these settings",
      {{"settings", std::string_view(names)}});
}

}  // namespace weir::app
