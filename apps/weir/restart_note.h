#pragma once

#include <string>

#include "config/file_settings.h"

namespace weir::app {

/// Tells an operator who reloads a service that its configuration file has changed as well: what
/// is in there is read at the start alone.
///
/// Thread-safe.
class RestartNote {
 public:
  /// Remembers what the file says. An empty path: there is none.
  explicit RestartNote(std::string file);

  /// Logs the settings that have changed since, if any have.
  void Write() const;

 private:
  const std::string file_;
  const Result<config::FileSettings> started_with_;
};

}  // namespace weir::app
