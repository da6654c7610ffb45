#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/file_settings.h"

namespace weir::app {

/// Warns an operator who reloads a service that its configuration file has changed as well: that
/// file is read only at startup.
///
/// Thread-safe.
class RestartNote {
 public:
  /// Reads the configuration as a start would, with the environment and the flags.
  using Check = std::function<std::vector<policy::yaml::Problem>()>;

  /// Remembers the settings in the file. An empty path: there is no file.
  RestartNote(std::string file, Check check);

  /// Logs the settings that have changed since, if any have, or why a restart would fail.
  void Write() const;

 private:
  const std::string file_;
  const Check check_;
  const Result<config::FileSettings> started_with_;
};

}  // namespace weir::app
