#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/config.h"
#include "weir/result.h"

namespace weir::config {

/// The contents of a configuration file as digests of its settings, to find out later what has
/// changed in it. Keys in files that it names are included by their contents.
///
/// Not thread-safe, like any value.
class FileSettings {
 public:
  /// Fails if the file cannot be read or is not YAML. An empty path means a file without settings.
  static Result<FileSettings> Read(const std::string& path);

  /// The names of the settings that differ, such as "access.keys".
  std::vector<std::string> ChangedIn(const FileSettings& later) const;

 private:
  std::map<std::string, Digest> settings_;
};

}  // namespace weir::config
