#pragma once

#include <string>

#include "config/file_settings.h"

namespace weir::app {

/// Warns an operator who reloads a service that its configuration file has changed as well: that
/// file is read only at startup.
///
/// Thread-safe.
class RestartNote {
 public:
  /// Remembers the settings in the file. An empty path: there is no file.
  explicit RestartNote(std::string file);

  /// Logs the settings that have changed since, if any.
  void Write() const;

 private:
  const std::string file_;
  const Result<config::FileSettings> started_with_;
};

}  // namespace weir::app
